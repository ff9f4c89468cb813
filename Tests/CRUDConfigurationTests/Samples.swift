import CRUDConfiguration
import CRUDJSON
import CRUDModel

/// The sample of the documentation, with users and groups that every Linux has.
let sample = #"""
    state_directory: /var/lib/crudd      # what the daemon itself remembers
    socket:
      path: /run/crudd/crudd.sock
      mode: "0660"
      group: daemon
    plugins:
      directories: [/usr/lib/crudd/plugins]
    backends:
      main:
        plugin: sqlite
        options: {path: /var/lib/crudd/main.sqlite}
      files:
        plugin: filesystem
        isolation: process
        limits: {memory: 256MiB, call_timeout: 10s}
        sha256: 9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08
        options: {directory: /var/lib/crudd/files}
      legacy:
        command: [/usr/lib/crudd/plugins/my-plugin.py, --flag]
        options: {}
    collections:
      clients: {backend: main, format: json, indexes: [name, address.city]}
      "Clients Database": {backend: files, format: xml}
      "*": {backend: main}
    access:
      - {users: [daemon, 1000], groups: [bin], collections: [clients], allow: [read, write]}
      - {groups: [root], allow: [read, write, admin]}
    loops: auto
    limits:
      frame_bytes: 16MiB
      item_bytes: 4MiB
      json_depth: 128
      query_limit: 10000
      batch: 1000
      collections: 10000
      sessions: 1024
      sessions_per_user: 256
      inflight_per_session: 256
      followers_per_session: 1024
      session_bytes: 64MiB
      buffer_bytes: 512MiB
      idle_timeout: 0s
      request_timeout: 30s
    log: {level: info}
    """#

/// The least that is a configuration, on one line.
let minimal = "backends: {main: {plugin: sqlite}}\n"

/// The configuration in `yaml`.
func configuration(
    _ yaml: String, environment: [String: String] = [:]
) throws(InvalidConfiguration) -> Configuration {
    try Configuration(yaml: Array(yaml.utf8), file: "crudd.yaml", environment: environment)
}

/// The errors of `yaml`, each as `LINE:COLUMN: message`.
func diagnostics(_ yaml: [UInt8]) -> [String] {
    do {
        _ = try Configuration(yaml: yaml, file: "crudd.yaml", environment: [:])
        return []
    } catch {
        return error.diagnostics.map { "\($0.line):\($0.column): \($0.message)" }
    }
}

func diagnostics(_ yaml: String) -> [String] { diagnostics(Array(yaml.utf8)) }

/// Whether these bytes are one JSON value.
func isJSON(_ bytes: [UInt8]) -> Bool {
    var scanner = JSONScanner()
    guard (try? scanner.value(bytes.span)) != nil else { return false }
    return scanner.isAtEnd(bytes.span)
}

extension CollectionRules {
    func rule(named name: String) -> CollectionRule? {
        let bytes = Array(name.utf8)
        return rule(for: bytes.span)
    }
}
