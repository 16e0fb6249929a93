{{/* Whether the history is SQLite on a volume: "true" or nothing. */}}
{{- define "alnair.historyFile" }}
{{- with .Values.controller.history }}
{{- if and .enabled (not .url) (not .urlFrom.secret) }}true{{ end }}
{{- end }}
{{- end }}
