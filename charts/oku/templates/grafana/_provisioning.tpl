{{/*
The data source as Grafana provisions it: (dict "root" $ "url" TEXT). What is secret comes from the
environment of Grafana.
*/}}
{{- define "oku.datasource" -}}
{{- $loki := .root.Values.loki -}}
{{- $external := $loki.external -}}
{{- $headers := list -}}
{{- if not $loki.enabled -}}
{{- with $external.tenant -}}
{{- $headers = append $headers (list "X-Scope-OrgID" .) -}}
{{- end -}}
{{- if eq $external.auth "bearer" -}}
{{- $headers = append $headers (list "Authorization" "Bearer $LOKI_TOKEN") -}}
{{- end -}}
{{- end -}}
apiVersion: 1
datasources:
  - name: {{ include "oku.datasourceName" .root }}
    uid: {{ include "oku.datasourceUid" .root }}
    type: loki
    access: proxy
    url: {{ .url | quote }}
    {{- if and (not $loki.enabled) (eq $external.auth "basic") }}
    basicAuth: true
    basicAuthUser: $LOKI_USERNAME
    {{- end }}
    jsonData:
      timeout: 60
      {{- range $number, $header := $headers }}
      httpHeaderName{{ add1 $number }}: {{ index $header 0 }}
      {{- end }}
    {{- if or $headers (and (not $loki.enabled) (eq $external.auth "basic")) }}
    secureJsonData:
      {{- range $number, $header := $headers }}
      httpHeaderValue{{ add1 $number }}: {{ index $header 1 }}
      {{- end }}
      {{- if and (not $loki.enabled) (eq $external.auth "basic") }}
      basicAuthPassword: $LOKI_PASSWORD
      {{- end }}
    {{- end }}
{{- end -}}

{{/* Which Loki it is, for a Grafana with those of several releases; empty for oku in oku. No part contains a `_`. */}}
{{- define "oku.datasourceOwner" -}}
{{- $owner := printf "%s_%s" (include "oku.base" .) .Release.Namespace -}}
{{- ternary "" $owner (eq $owner "oku_oku") -}}
{{- end -}}

{{- define "oku.datasourceName" -}}
Oku Loki
{{- with include "oku.datasourceOwner" . }} ({{ . | replace "_" " in " }}){{ end -}}
{{- end -}}

{{/* Grafana takes at most 40 characters. */}}
{{- define "oku.datasourceUid" -}}
oku-loki
{{- with include "oku.datasourceOwner" . -}}
-{{ ternary . (sha256sum . | trunc 24) (le (len .) 31) }}
{{- end -}}
{{- end -}}

{{/* What the name of a dashboard's ConfigMap ends with: for dashboards/oku-run.json it is dashboard-run. */}}
{{- define "oku.dashboardSuffix" -}}
{{- base . | trimSuffix ".json" | trimPrefix "oku-" | printf "dashboard-%s" -}}
{{- end -}}
