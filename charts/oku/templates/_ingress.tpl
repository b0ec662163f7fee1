{{/* An Ingress to the port `http` of a component's Service: (dict "root" $ "component" NAME "suffix" TEXT "ingress" VALUES). */}}
{{- define "oku.ingress" -}}
{{- $ingress := .ingress -}}
{{- $name := include "oku.name" . -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "oku.metadata" (merge (dict "annotations" $ingress.annotations) .) | nindent 2 }}
spec:
  {{- with $ingress.className }}
  ingressClassName: {{ toYaml . }}
  {{- end }}
  {{- with $ingress.tls }}
  tls:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    {{- range $ingress.hosts }}
    - host: {{ . | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ $name }}
                port: {name: http}
    {{- end }}
{{- end -}}

{{/* An HTTPRoute to a component's Service: (dict "root" $ "component" NAME "suffix" TEXT "route" VALUES "port" NUMBER). */}}
{{- define "oku.httpRoute" -}}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  {{- include "oku.metadata" (merge (dict "annotations" .route.annotations) .) | nindent 2 }}
spec:
  parentRefs:
    {{- toYaml .route.parentRefs | nindent 4 }}
  {{- with .route.hostnames }}
  hostnames:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  rules:
    - backendRefs:
        - name: {{ include "oku.name" . }}
          port: {{ .port }}
      {{- with .route.filters }}
      filters:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .route.timeouts }}
      timeouts:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}

{{/* Where an Ingress or an HTTPRoute of a component answers, empty without one: VALUES of the component. */}}
{{- define "oku.addresses" -}}
{{- $hosts := ternary (default list .ingress.hosts) list .ingress.enabled -}}
{{- $hostnames := ternary (default list .httpRoute.hostnames) list .httpRoute.enabled -}}
{{- with concat $hosts $hostnames | uniq -}}
https://{{ join " and https://" . }}
{{- end -}}
{{- end -}}
