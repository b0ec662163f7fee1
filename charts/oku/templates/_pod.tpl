{{/*
What a component's pods have: `pods`, and over it what its own `pod` says: (dict "root" $ "component" NAME "pod"
VALUES). The pod of `helm test` is ours alone.
*/}}
{{- define "oku.podValues" -}}
{{- $values := dict -}}
{{- include "oku.overlay" (dict "under" $values "over" .root.Values.pods) -}}
{{- include "oku.overlay" (dict "under" $values "over" .pod) -}}
{{- if eq .component "test" -}}
{{- $values = omit $values "extraEnv" "envFrom" "extraVolumes" "extraVolumeMounts" "extraInitContainers" "extraContainers" -}}
{{- end -}}
{{- $values | toYaml -}}
{{- end -}}

{{/* Puts values over others, in place: maps are merged, anything else is replaced, null removes: (dict "under" DICT "over" DICT). */}}
{{- define "oku.overlay" -}}
{{- range $key, $value := .over -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $.under $key -}}
{{- else if kindIs "map" $value -}}
{{- if not (kindIs "map" (get $.under $key)) -}}
{{- $_ := set $.under $key dict -}}
{{- end -}}
{{- include "oku.overlay" (dict "under" (get $.under $key) "over" $value) -}}
{{- else -}}
{{- $_ := set $.under $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The metadata of a pod: (dict "root" $ "component" NAME "pod" VALUES "annotations" DICT "labels" DICT). */}}
{{- define "oku.podMetadata" -}}
{{- $pod := include "oku.podValues" . | fromYaml -}}
{{- $own := include "oku.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" (toString .root.Chart.AppVersion) -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "oku" -}}
{{- $annotations := merge (dict) (default dict .annotations) (default dict $pod.annotations) (default dict .root.Values.extraAnnotations) -}}
labels:
  {{- merge $own (default dict .labels) (default dict $pod.labels) (default dict .root.Values.extraLabels) | toYaml | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
What every pod spec has: (dict "root" $ "component" NAME "suffix" TEXT "pod" VALUES "hasRights" BOOL "sysctls" LIST).
A pod has the token of its service account if that has rights that Oku uses, or if the values say so. It has no
variables of Services, which would be taken for Oku's own (OKU_PORT).
*/}}
{{- define "oku.podSpec" -}}
{{- $pod := include "oku.podValues" . | fromYaml -}}
automountServiceAccountToken: {{ or .hasRights (dig "serviceAccount" "automount" false $pod) }}
# Always said: a name that is no longer said stays (the old field `serviceAccount` keeps it).
serviceAccountName: {{ include "oku.accountName" . | toYaml }}
enableServiceLinks: false
{{- $security := default dict $pod.podSecurityContext -}}
{{- with concat (default list .sysctls) (default list $security.sysctls) -}}
{{- $_ := set $security "sysctls" . -}}
{{- end -}}
{{- with $security }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $fields := pick $pod "priorityClassName" "runtimeClassName" "nodeSelector" "tolerations" "affinity" "dnsPolicy" "dnsConfig" "hostAliases" -}}
{{- with $pod.extraInitContainers -}}
{{- $_ := set $fields "initContainers" . -}}
{{- end -}}
{{- range $key, $value := $fields }}
{{- with $value }}
{{ $key }}: {{ kindIs "string" . | ternary "" "\n" }}{{ toYaml . | indent (kindIs "string" . | ternary 0 2) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The name of the service account of a component: (dict "root" $ "component" NAME "suffix" TEXT "pod" VALUES). */}}
{{- define "oku.accountName" -}}
{{- $account := default dict (include "oku.podValues" . | fromYaml).serviceAccount -}}
{{- if eq .component "test" -}}
{{- include "oku.name" . -}}
{{- else if or $account.name $account.create -}}
{{- default (include "oku.name" .) $account.name -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{/* What every container has: (dict "root" $ "component" NAME "pod" VALUES "image" VALUES "resources" VALUES). */}}
{{- define "oku.containerSpec" -}}
{{- $pod := include "oku.podValues" . | fromYaml -}}
{{- $resources := dict -}}
{{- include "oku.overlay" (dict "under" $resources "over" .resources) -}}
image: {{ include "oku.image" . }}
imagePullPolicy: {{ .image.pullPolicy }}
{{- with $pod.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The name of an image: (dict "root" $ "image" VALUES). */}}
{{- define "oku.image" -}}
{{- $registry := default .image.registry .root.Values.imageRegistry -}}
{{- $name := ternary .image.repository (printf "%s/%s" $registry .image.repository) (empty $registry) -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest | quote -}}
{{- else -}}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) | quote -}}
{{- end -}}
{{- end -}}

{{/* The default repository at a public registry, where its name is not ours; else empty. */}}
{{- define "oku.unownedImage" -}}
{{- $image := include "oku.image" (dict "root" . "image" .Values.image) | trimAll "\"" -}}
{{- if regexMatch "^(?i)((.+[.])?(docker[.](io|com)|ghcr[.]io|quay[.]io|gcr[.]io|public[.]ecr[.]aws|registry[.]gitlab[.]com)/)?oku/oku[:@]" $image -}}
{{- printf "image: %s would come from a public registry, where this name is not ours: set image.registry, or imageRegistry where that is set, to the registry to which you pushed the image, or image.repository to a name of yours there" $image -}}
{{- end -}}
{{- end -}}

{{/* The extra variables of a component, as items of a list: (dict "root" $ "component" NAME "pod" VALUES). */}}
{{- define "oku.extraEnv" -}}
{{- with (include "oku.podValues" . | fromYaml).extraEnv -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* Which files specs may name: the coordinator refuses all others, and so do workers. */}}
{{- define "oku.filesEnv" -}}
{{- with .Values.workers.filesDirs -}}
- name: OKU_FILES_DIR
  value: {{ join ":" . | quote }}
{{- end -}}
{{- end -}}

{{/* The extra volumes of a component, as extra variables. */}}
{{- define "oku.extraVolumes" -}}
{{- with (include "oku.podValues" . | fromYaml).extraVolumes -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* The same of what its container mounts. */}}
{{- define "oku.extraVolumeMounts" -}}
{{- with (include "oku.podValues" . | fromYaml).extraVolumeMounts -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* The containers of a component beside its own. */}}
{{- define "oku.extraContainers" -}}
{{- with (include "oku.podValues" . | fromYaml).extraContainers -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* How many of a component may be evicted at a time: (dict "root" $ "component" NAME "suffix" TEXT "maxUnavailable" NUMBER). */}}
{{- define "oku.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "oku.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "oku.selectorLabels" . | nindent 6 }}
{{- end -}}
