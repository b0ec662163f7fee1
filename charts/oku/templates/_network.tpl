{{/*
The head of a policy for a component: (dict "root" $ "component" NAME "suffix" TEXT). A direction without rules
is left out, which denies it: the API server stores `ingress: []` without the list, and would differ for ever.
*/}}
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
    {{- include "oku.asStored" . | nindent 4 }}
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

{{/*
A list of rules or peers as the API server stores it: LIST. It drops empty lists, and the empty `matchLabels` of
a selector; an empty selector or rule stays, because it selects everything.
*/}}
{{- define "oku.asStored" -}}
{{- $stored := list -}}
{{- range . -}}
{{- $stored = append $stored (include "oku.mappingAsStored" . | fromYaml) -}}
{{- end -}}
{{- toYaml $stored -}}
{{- end -}}

{{- define "oku.mappingAsStored" -}}
{{- $stored := dict -}}
{{- range $key, $value := . -}}
{{- if kindIs "map" $value -}}
{{- if or $value (ne $key "matchLabels") -}}
{{- $_ := set $stored $key (include "oku.mappingAsStored" $value | fromYaml) -}}
{{- end -}}
{{- else if not (kindIs "slice" $value) -}}
{{- $_ := set $stored $key $value -}}
{{- else if and $value (kindIs "map" (first $value)) -}}
{{- $_ := set $stored $key (include "oku.asStored" $value | fromYamlArray) -}}
{{- else if $value -}}
{{- $_ := set $stored $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $stored -}}
{{- end -}}
