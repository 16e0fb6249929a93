{{/*
A component that runs in the control plane: one leads, the others wait.
Takes (dict "root" $ "component" NAME "values" VALUES "args" ARGUMENTS "volumes" VOLUMES "mounts" MOUNTS "annotations" ANNOTATIONS
"env" VARIABLES "isAlone" BOOL "hasMetrics" BOOL).
*/}}
{{- define "alnair.deployment" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: alnair-{{ .component }}
  namespace: alnair-system
  labels: {{- include "alnair.componentLabels" . | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels: {{- include "alnair.selector" .component | nindent 6 }}
  strategy:
    {{- if .isAlone }}
    type: Recreate
    {{- else }}
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
    {{- end }}
  template:
    metadata:
      labels:
        {{- include "alnair.selector" .component | nindent 8 }}
        {{- range $key, $value := .values.podLabels }}
        {{ $key }}: {{ $value | quote }}
        {{- end }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .component }}
        {{- with .annotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if and .hasMetrics .root.Values.monitoring.annotations }}
        prometheus.io/scrape: "true"
        prometheus.io/port: {{ .values.port | quote }}
        prometheus.io/path: /metrics
        prometheus.io/scheme: {{ include "alnair.scheme" .root | lower }}
        {{- end }}
        {{- range $key, $value := .values.podAnnotations }}
        {{ $key }}: {{ $value | quote }}
        {{- end }}
    spec:
      serviceAccountName: alnair-{{ .component }}
      automountServiceAccountToken: true
      {{- with .values.nodeName }}
      nodeName: {{ . }}
      {{- end }}
      {{- with .values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        {{- if .isAlone }}
        fsGroup: 65532
        {{- end }}
        seccompProfile:
          type: RuntimeDefault
      {{- include "alnair.placement" .values | nindent 6 }}
      containers:
        - name: {{ .component }}
          image: {{ include "alnair.image" (dict "root" .root "image" .values.image) }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            {{- toYaml .args | nindent 12 }}
            {{- if .root.Values.secureServing }}
            - --secure-serving
            {{- end }}
            {{- with .values.extraArgs }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          env:
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            {{- with .env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
            {{- with .values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - name: http
              containerPort: {{ .values.port }}
          startupProbe:
            httpGet: &health
              path: /healthz
              port: http
              scheme: {{ include "alnair.scheme" .root }}
            periodSeconds: 1
            failureThreshold: 60
          livenessProbe:
            httpGet: *health
            periodSeconds: 10
            # A busy node is slow, and not dead.
            timeoutSeconds: 5
            failureThreshold: 3
          readinessProbe:
            httpGet:
              path: /readyz
              port: http
              scheme: {{ include "alnair.scheme" .root }}
            periodSeconds: 5
            timeoutSeconds: 3
          securityContext: {{- include "alnair.restricted" . | nindent 12 }}
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- with .mounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        {{- with .volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{/* Beside a Deployment: who reaches it, and how many may be away. Takes (dict "root" $ "component" NAME "values" VALUES). */}}
{{- define "alnair.beside" }}
---
apiVersion: v1
kind: Service
metadata:
  name: alnair-{{ .component }}
  namespace: alnair-system
  labels: {{- include "alnair.componentLabels" . | nindent 4 }}
spec:
  selector: {{- include "alnair.selector" .component | nindent 4 }}
  ports:
    - name: http
      port: {{ .values.port }}
      targetPort: http
{{- if and .values.podDisruptionBudget (gt (int .values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: alnair-{{ .component }}
  namespace: alnair-system
  labels: {{- include "alnair.componentLabels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "alnair.selector" .component | nindent 6 }}
{{- end }}
{{- include "alnair.networkPolicy" . }}
{{- end }}

{{/* Only the one port is open, to whom the values name. Takes (dict "root" $ "component" NAME "values" VALUES). */}}
{{- define "alnair.networkPolicy" }}
{{- if .root.Values.networkPolicies.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: alnair-{{ .component }}
  namespace: alnair-system
  labels: {{- include "alnair.componentLabels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "alnair.selector" .component | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - ports:
        - port: http
      {{- with .root.Values.networkPolicies.from }}
      from: {{- toYaml . | nindent 8 }}
      {{- if and (eq $.component "agent") $.root.Values.controller.history.enabled }}
        # It reads what they measured.
        - podSelector:
            matchLabels: {{- include "alnair.selector" "controller" | nindent 14 }}
      {{- end }}
      {{- end }}
{{- end }}
{{- end }}
