{{- /* Names, labels, environment and the pod that Deployment and hook jobs share. Templates take
a dict: root (the chart's context), v (the values of one worker), name, class. */ -}}

{{- define "dragoman.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 32 | trimAll "-." -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 32 | trimAll "-." -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 32 | trimAll "-." -}}
{{- end -}}
{{- end -}}

{{- define "dragoman.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{ include "dragoman.selector" . }}
{{- end -}}

{{- define "dragoman.selector" -}}
app.kubernetes.io/name: dragoman
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .class }}
{{- end -}}

{{- define "dragoman.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}
{{- end -}}

{{- /* A name without a registry is that of the clone's own build, which no cluster can pull. */ -}}
{{- define "dragoman.pullable" -}}
{{- if and (not (contains "/" .image.repository)) (ne .image.pullPolicy "Never") -}}
{{- fail (printf "%s%s.repository: %s is in no registry; build deploy/Dockerfile.%s, push it, and give its name there, such as registry.example.org/%s (or set %s.pullPolicy: Never for an image that the nodes have)" .where .name .image.repository .file .image.repository .name) -}}
{{- end -}}
{{- end -}}

{{- define "dragoman.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "dragoman.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* What hook jobs run as: the release's own account does not exist before it is installed. */ -}}
{{- define "dragoman.hookServiceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- include "dragoman.fullname" . }}-hooks
{{- else -}}
{{- include "dragoman.serviceAccount" . -}}
{{- end -}}
{{- end -}}

{{- /* Strimzi makes topics and user with the release, so what needs them comes after it. */ -}}
{{- define "dragoman.hookPhase" -}}
{{- ternary "post-install,post-upgrade" "pre-install,pre-upgrade" .Values.strimzi.enabled -}}
{{- end -}}

{{- /* The value of a setting by group and name, or the given default. */ -}}
{{- define "dragoman.setting" -}}
{{- $group := default dict (get .v.settings .group) -}}
{{- if and (hasKey $group .name) (not (kindIs "invalid" (get $group .name))) -}}
{{- get $group .name -}}
{{- else -}}
{{- .default -}}
{{- end -}}
{{- end -}}

{{- define "dragoman.hasModel" -}}
{{- if or .v.model.existingClaim .v.model.image .v.model.hostPath -}}yes{{- end -}}
{{- end -}}

{{- /* Names of the jobs' topics without weights, with commas. */ -}}
{{- define "dragoman.topics" -}}
{{- $topics := list -}}
{{- range (default (list "dragoman.jobs") (get (default dict .v.settings.kafka) "topics")) -}}
{{- $topics = append $topics (splitList ":" . | first) -}}
{{- end -}}
{{- join "," $topics -}}
{{- end -}}

{{- /* DRAGOMAN_GROUP__NAME for every setting of a tree. */ -}}
{{- define "dragoman.tree" -}}
{{- $path := .path -}}
{{- range $key, $value := .tree }}
{{- $name := append $path $key }}
{{- $options := eq (join "." $name) "engine.options" }}
{{- if and (kindIs "map" $value) (not $options) }}
{{- include "dragoman.tree" (dict "path" $name "tree" $value) }}
{{- else if not (kindIs "invalid" $value) }}
- name: DRAGOMAN_{{ join "__" $name | upper }}
  {{- if kindIs "string" $value }}
  value: {{ $value | quote }}
  {{- else if kindIs "slice" $value }}
  value: {{ join "," $value | quote }}
  {{- else }}
  value: {{ toJson $value | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* "yes" where workers log in as the KafkaUser that this release makes. */ -}}
{{- define "dragoman.logsInByStrimzi" -}}
{{- $protocol := include "dragoman.setting" (dict "v" .v "group" "kafka" "name" "security_protocol" "default" "PLAINTEXT") -}}
{{- $strimzi := .root.Values.strimzi -}}
{{- if and $strimzi.enabled $strimzi.user.enabled (eq $strimzi.user.authentication "scram-sha-512") (hasPrefix "SASL_" $protocol) -}}yes{{- end -}}
{{- end -}}

{{- /* User and password from the Secret that Strimzi makes for the KafkaUser, unless they are given. */ -}}
{{- define "dragoman.strimziLogin" -}}
{{- if include "dragoman.logsInByStrimzi" . -}}
{{- $kafka := default dict .v.settings.kafka -}}
{{- if not (or $kafka.sasl_plain_username (hasKey .v.secretSettings "kafka.sasl_plain_username")) }}
- name: DRAGOMAN_KAFKA__SASL_PLAIN_USERNAME
  value: {{ include "dragoman.fullname" .root | quote }}
{{- end }}
{{- if not (or $kafka.sasl_plain_password_file (hasKey .v.secretSettings "kafka.sasl_plain_password")) }}
- name: DRAGOMAN_KAFKA__SASL_PLAIN_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ include "dragoman.fullname" .root | quote }}, key: password}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "dragoman.secrets" -}}
{{- include "dragoman.strimziLogin" . }}
{{- range $setting, $from := .v.secretSettings }}
- name: DRAGOMAN_{{ $setting | replace "." "__" | upper }}
  valueFrom:
    secretKeyRef: {name: {{ $from.name | quote }}, key: {{ $from.key | quote }}}
{{- end }}
{{- end -}}

{{- define "dragoman.env" -}}
{{- include "dragoman.tree" (dict "path" list "tree" .v.settings) }}
{{- if and (include "dragoman.hasModel" .) (not (include "dragoman.setting" (dict "v" .v "group" "engine" "name" "model" "default" ""))) }}
- name: DRAGOMAN_ENGINE__MODEL
  value: {{ .v.model.path | quote }}
{{- end }}
{{- include "dragoman.secrets" . }}
- name: DRAGOMAN_WORKER_ID
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: DRAGOMAN_HTTP__HOST
  value: {{ .v.httpHost | quote }}
- name: DRAGOMAN_HTTP__PORT
  value: {{ .v.port | toString | quote }}
- name: HOME
  value: /home/dragoman
{{- with .v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Kafka's settings alone, for the client's image. */ -}}
{{- define "dragoman.clientEnv" -}}
{{- include "dragoman.tree" (dict "path" list "tree" (pick .v.settings "kafka")) }}
{{- range $setting, $from := .v.secretSettings }}
{{- if hasPrefix "kafka." $setting }}
- name: DRAGOMAN_{{ $setting | replace "." "__" | upper }}
  valueFrom:
    secretKeyRef: {name: {{ $from.name | quote }}, key: {{ $from.key | quote }}}
{{- end }}
{{- end }}
- name: HOME
  value: /home/dragoman
{{- with .v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Settings of Kafka, Redis and tracing, and those of the group `serve`, for the gateway. */ -}}
{{- define "dragoman.gatewayEnv" -}}
{{- $g := .root.Values.gateway -}}
{{- include "dragoman.tree" (dict "path" list "tree" (pick .v.settings "kafka" "redis" "tracing" "connect_timeout_s")) }}
{{- include "dragoman.tree" (dict "path" (list "serve") "tree" $g.settings) }}
{{- include "dragoman.strimziLogin" . }}
{{- range $setting, $from := .v.secretSettings }}
{{- if or (hasPrefix "kafka." $setting) (hasPrefix "redis." $setting) (hasPrefix "tracing." $setting) }}
- name: DRAGOMAN_{{ $setting | replace "." "__" | upper }}
  valueFrom:
    secretKeyRef: {name: {{ $from.name | quote }}, key: {{ $from.key | quote }}}
{{- end }}
{{- end }}
- {name: DRAGOMAN_SERVE__HOST, value: "0.0.0.0"}
- {name: DRAGOMAN_SERVE__PORT, value: {{ int $g.port | toString | quote }}}
- {name: DRAGOMAN_SERVE__ADMIN_HOST, value: "0.0.0.0"}
- {name: DRAGOMAN_SERVE__ADMIN_PORT, value: {{ int $g.adminPort | toString | quote }}}
- name: DRAGOMAN_SERVE__KEYS_FILE
  value: {{ printf "/etc/dragoman/keys/%s" $g.keysSecret.key | quote }}
- name: HOME
  value: /home/dragoman
{{- with .v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* What a NetworkPolicy lets pods reach: names, and what is given. */ -}}
{{- define "dragoman.egress" -}}
egress:
  - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
  {{- with .v.networkPolicy.egress }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "dragoman.fileMounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: cache, mountPath: /home/dragoman}
{{- range $name, $file := .v.mounts }}
- {name: {{ printf "file-%s" $name }}, mountPath: {{ $file.path | quote }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "dragoman.modelMount" -}}
{{- if include "dragoman.hasModel" . -}}
- name: model
  mountPath: {{ .v.model.path | quote }}
  readOnly: true
  {{- with .v.model.subPath }}
  subPath: {{ . | quote }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "dragoman.modelVolume" -}}
{{- if .v.model.existingClaim -}}
- name: model
  persistentVolumeClaim: {claimName: {{ .v.model.existingClaim | quote }}, readOnly: true}
{{- else if .v.model.image -}}
- name: model
  image: {reference: {{ .v.model.image | quote }}, pullPolicy: IfNotPresent}
{{- else if .v.model.hostPath -}}
- name: model
  hostPath: {path: {{ .v.model.hostPath | quote }}, type: Directory}
{{- end -}}
{{- end -}}

{{- define "dragoman.fileVolumes" -}}
- name: tmp
  emptyDir: {sizeLimit: {{ .v.tmp.size | quote }}}
{{- range $name, $file := .v.mounts }}
- name: {{ printf "file-%s" $name }}
  {{- if $file.secret }}
  secret: {secretName: {{ $file.secret | quote }}, defaultMode: 0440}
  {{- else }}
  configMap: {name: {{ $file.configMap | quote }}}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "dragoman.podBasics" -}}
enableServiceLinks: false
automountServiceAccountToken: false
{{- with .v.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .v.podSecurityContext | nindent 2 }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "runtimeClassName" }}
{{- with get $.v $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
