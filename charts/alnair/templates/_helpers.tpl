{{/* Labels of every object. */}}
{{- define "alnair.labels" }}
app.kubernetes.io/name: alnair
app.kubernetes.io/part-of: alnair
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels that pods of a component are found by; they cannot change in an upgrade. Takes the component's name. */}}
{{- define "alnair.selector" }}
app.kubernetes.io/name: alnair
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* Labels of a component's objects. Takes (dict "root" $ "component" NAME). */}}
{{- define "alnair.componentLabels" }}
{{- include "alnair.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* An image's name. Takes (dict "root" $ "image" IMAGE). */}}
{{- define "alnair.image" -}}
{{- $tag := .image.tag | default .root.Values.image.tag | default .root.Chart.AppVersion -}}
{{- $name := printf "%s/%s" (.root.Values.image.registry | trimSuffix "/") .image.repository -}}
{{- if .image.digest -}}{{ $name }}@{{ .image.digest }}{{- else -}}{{ $name }}:{{ $tag }}{{- end -}}
{{- end }}

{{/* Mutating policies are v1 from Kubernetes 1.36 on, v1beta1 in 1.34 and 1.35, v1alpha1 in 1.32 and 1.33. */}}
{{- define "alnair.mutatingPolicyVersion" -}}
{{- $group := "admissionregistration.k8s.io" -}}
{{- if .Capabilities.APIVersions.Has (printf "%s/v1/MutatingAdmissionPolicy" $group) -}}{{ $group }}/v1
{{- else if .Capabilities.APIVersions.Has (printf "%s/v1beta1/MutatingAdmissionPolicy" $group) -}}{{ $group }}/v1beta1
{{- else if .Capabilities.APIVersions.Has (printf "%s/v1alpha1/MutatingAdmissionPolicy" $group) -}}{{ $group }}/v1alpha1
{{- else if semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "this cluster (%s) serves no MutatingAdmissionPolicy: set admission.mutating=false, and users write what it adds by hand (docs/reference/admission.md)" .Capabilities.KubeVersion.Version) -}}
{{- else -}}{{ $group }}/v1
{{- end -}}
{{- end }}

{{/* What the restricted Pod Security Standard asks of a container. */}}
{{- define "alnair.restricted" }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* How health and metrics are served. */}}
{{- define "alnair.scheme" -}}
{{ ternary "HTTPS" "HTTP" .Values.secureServing }}
{{- end }}

{{/*
Where pods of a component may run. Takes the component's values. A label that is null, to be rid of a
default, comes as null with `helm upgrade --reuse-values`; as an empty value it would be on no node.
*/}}
{{- define "alnair.placement" }}
{{- $labels := dict }}
{{- range $key, $value := .nodeSelector }}
{{- if not (kindIs "invalid" $value) }}
{{- $_ := set $labels $key $value }}
{{- end }}
{{- end }}
{{- with $labels }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
