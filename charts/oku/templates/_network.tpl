{{/* The head of a policy for a component: (dict "root" $ "component" NAME "suffix" TEXT). */}}
{{- define "oku.policyHead" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "oku.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "oku.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
{{- end -}}

{{/* A peer: the pods of a component: (dict "root" $ "component" NAME). */}}
{{- define "oku.peer" -}}
podSelector:
  matchLabels:
    {{- include "oku.selectorLabels" . | nindent 4 }}
{{- end -}}

{{/* A rule of egress to a component's port: (dict "root" $ "component" NAME "port" NUMBER "protocol" NAME). */}}
{{- define "oku.egressTo" -}}
- to:
    - {{- include "oku.peer" . | nindent 6 }}
  ports:
    - {port: {{ .port }}, protocol: {{ default "TCP" .protocol }}}
{{- end -}}

{{/* A rule of egress to names. */}}
{{- define "oku.egressToDns" -}}
{{- $dns := .Values.networkPolicy.dns -}}
- {{- with $dns.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    {{- range $dns.ports }}
    - {port: {{ . }}, protocol: UDP}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end -}}

{{/* A rule of egress to the broker. */}}
{{- define "oku.egressToBroker" -}}
{{- if .Values.valkey.enabled -}}
{{- include "oku.egressTo" (dict "root" . "component" "valkey" "port" 6379) -}}
{{- else -}}
- ports:
    - {port: {{ include "oku.brokerPort" . }}, protocol: TCP}
{{- end -}}
{{- end -}}

{{/* A rule of egress to Loki; empty without one. */}}
{{- define "oku.egressToLoki" -}}
{{- if .Values.loki.enabled -}}
{{- include "oku.egressTo" (dict "root" . "component" "loki" "port" 3100) -}}
{{- else if .Values.loki.external.url -}}
- ports:
    - {port: {{ include "oku.lokiPort" . }}, protocol: TCP}
{{- end -}}
{{- end -}}

{{/* A rule of egress to the Kubernetes API. */}}
{{- define "oku.egressToKubernetes" -}}
- {{- with .Values.networkPolicy.kubernetesApi }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
  ports:
    {{- range .Values.networkPolicy.kubernetesApiPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end -}}
