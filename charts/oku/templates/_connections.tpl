{{/* Name of the Secret with the token of the API. */}}
{{- define "oku.tokenSecret" -}}
{{- default (include "oku.name" (dict "root" . "suffix" "token")) .Values.coordinator.token.existingSecret -}}
{{- end -}}

{{/* The key of the token in it. */}}
{{- define "oku.tokenKey" -}}
{{- ternary .Values.coordinator.token.key "token" (not (empty .Values.coordinator.token.existingSecret)) -}}
{{- end -}}

{{/* A command that prints the value of a key, which may have dots: (dict "root" $ "secret" NAME "key" TEXT). */}}
{{- define "oku.readSecret" -}}
kubectl -n {{ .root.Release.Namespace }} get secret {{ .secret }} -o go-template='{{ "{{" }}index .data {{ .key | quote }} | base64decode}}'
{{- end -}}

{{/* Name of the Secret with the passwords of Valkey's users. */}}
{{- define "oku.valkeySecret" -}}
{{- default (include "oku.name" (dict "root" . "suffix" "valkey")) .Values.valkey.password.existingSecret -}}
{{- end -}}

{{/* Name of the Secret with Grafana's administrator. */}}
{{- define "oku.grafanaSecret" -}}
{{- default (include "oku.name" (dict "root" . "suffix" "grafana")) .Values.grafana.admin.existingSecret -}}
{{- end -}}

{{/* Address of the API within the cluster. */}}
{{- define "oku.coordinatorUrl" -}}
{{- printf "http://%s.%s.svc:%d" (include "oku.name" (dict "root" . "suffix" "coordinator")) .Release.Namespace (int .Values.coordinator.service.port) -}}
{{- end -}}

{{/* Address of Loki for the pods of the release, empty without one. */}}
{{- define "oku.lokiUrl" -}}
{{- if .Values.loki.enabled -}}
{{- printf "http://%s:3100" (include "oku.name" (dict "root" . "suffix" "loki")) -}}
{{- else -}}
{{- .Values.loki.external.url -}}
{{- end -}}
{{- end -}}

{{/* Address of Loki for pods of any namespace. */}}
{{- define "oku.lokiUrlFromAnywhere" -}}
{{- if .Values.loki.enabled -}}
{{- printf "http://%s.%s.svc:3100" (include "oku.name" (dict "root" . "suffix" "loki")) .Release.Namespace -}}
{{- else -}}
{{- .Values.loki.external.url -}}
{{- end -}}
{{- end -}}

{{/* Port of an external Loki. */}}
{{- define "oku.lokiPort" -}}
{{- $url := urlParse .Values.loki.external.url -}}
{{- $said := default (ternary "443" "80" (eq $url.scheme "https")) (regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host)) -}}
{{- default $said .Values.loki.external.port -}}
{{- end -}}

{{/* Port of an external broker. */}}
{{- define "oku.brokerPort" -}}
{{- $url := urlParse .Values.broker.external.url -}}
{{- $usual := get (dict "amqp" 5672 "amqps" 5671) $url.scheme | default 6379 -}}
{{- $said := default $usual (regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host)) -}}
{{- default $said .Values.broker.external.port -}}
{{- end -}}

{{/*
The variables that say where the broker is, as items of a list: (dict "root" $ "component" NAME). Each component
is a user of Valkey's.
*/}}
{{- define "oku.brokerEnv" -}}
{{- $component := .component -}}
{{- with .root -}}
{{- if .Values.valkey.enabled -}}
- name: OKU_BROKER_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "oku.valkeySecret" . | toYaml }}
      key: {{ get .Values.valkey.password (printf "%sKey" $component) | toYaml }}
- name: OKU_BROKER_URL
  value: redis://{{ $component }}:$(OKU_BROKER_PASSWORD)@{{ include "oku.name" (dict "root" . "suffix" "valkey") }}:6379/0
{{- else if .Values.broker.external.existingSecret -}}
- name: OKU_BROKER_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.broker.external.existingSecret | toYaml }}
      key: {{ .Values.broker.external.key | toYaml }}
{{- else -}}
- name: OKU_BROKER_URL
  value: {{ .Values.broker.external.url | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The variable that says where the key of messages is, for the coordinator. */}}
{{- define "oku.messageKeyEnv" -}}
- name: OKU_MESSAGE_KEY_FILE
  value: /run/oku/message-key
{{- end -}}


{{/* The key itself, for workers: user code can read the files of its pod, but not the environment of its worker. */}}
{{- define "oku.messageKeyInEnv" -}}
- name: OKU_MESSAGE_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "oku.messageKeySecret" . | toYaml }}
      key: {{ .Values.broker.messageKey.key | quote }}
{{- end -}}

{{/* The name of its Secret. */}}
{{- define "oku.messageKeySecret" -}}
{{- default (include "oku.name" (dict "root" . "suffix" "message-key")) .Values.broker.messageKey.existingSecret -}}
{{- end -}}

{{/* The mount of its file, and its volume. */}}
{{- define "oku.messageKeyMount" -}}
- name: message-key
  mountPath: /run/oku
  readOnly: true
{{- end -}}

{{- define "oku.messageKeyVolume" -}}
- name: message-key
  secret:
    secretName: {{ include "oku.messageKeySecret" . | toYaml }}
    defaultMode: 0440
    items:
      - {key: {{ .Values.broker.messageKey.key | quote }}, path: message-key}
{{- end -}}

{{/* The variables that say where Loki is, as items of a list; empty without one. */}}
{{- define "oku.lokiEnv" -}}
{{- $external := .Values.loki.external -}}
{{- with include "oku.lokiUrl" . -}}
- name: OKU_LOKI_URL
  value: {{ . | quote }}
{{- if not $.Values.loki.enabled }}
{{- with $external.tenant }}
- name: OKU_LOKI_TENANT
  value: {{ . | quote }}
{{- end }}
{{- range $variable, $key := get (dict "none" (dict) "basic" (dict "OKU_LOKI_USERNAME" "username" "OKU_LOKI_PASSWORD" "password") "bearer" (dict "OKU_LOKI_TOKEN" "token")) $external.auth }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ $external.existingSecret | toYaml }}
      key: {{ $key }}
{{- end }}
{{- end }}
- name: OKU_LOKI_OUTBOX
  value: {{ $.Values.coordinator.lokiOutbox | quote }}
{{- end -}}
{{- end -}}
