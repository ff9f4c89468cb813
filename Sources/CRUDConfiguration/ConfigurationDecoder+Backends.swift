import CRUDModel
import Glibc

/// Where plugins are looked for.
struct PluginDirectories {
    /// Those that the file names without an error.
    let sound: [String]
    /// Whether there are no others, so that a plugin which is in none of them is an error.
    let areAll: Bool

    /// Whether one of them has a plugin: a plain name or an absolute path.
    fileprivate func have(_ plugin: String) -> Bool {
        plugin.hasPrefix("/")
            ? sound.contains { lies(plugin, beneath: $0) } : sound.contains { access("\($0)/\(plugin).so", F_OK) == 0 }
    }

    private func lies(_ path: String, beneath directory: String) -> Bool {
        let path = path.split(separator: "/").filter { $0 != "." }
        let directory = directory.split(separator: "/").filter { $0 != "." }
        return path.count > directory.count && path.starts(with: directory) && !path.contains("..")
    }
}

extension ConfigurationDecoder {
    private enum BackendKey: String, CaseIterable {
        case plugin, command, isolation, cache, limits, sha256, options
    }

    private enum BackendLimitsKey: String, CaseIterable {
        case memory
        case callTimeout = "call_timeout"
    }

    /// The backends without an error whose plugins can be looked for.
    mutating func backends(_ node: YAMLNode, pluginDirectories: PluginDirectories) -> [BackendConfiguration] {
        guard let entries = entries(node, "a mapping of names to backends") else { return [] }
        if entries.isEmpty { report(node.position, "at least one backend is needed") }
        let documentErrors = diagnostics
        var names: Set<String> = []
        return entries.compactMap { entry -> BackendConfiguration? in
            let name = String(decoding: entry.key, as: UTF8.self)
            let countBefore = diagnostics.count
            if let reason = Naming.violation(entry.key.span, maximum: Naming.maximumCollectionNameBytes) {
                report(entry.keyPosition, "the name of a backend \(reason)")
            } else if !names.insert(name).inserted {
                // Keys of a mapping are compared by code point, but names of backends as strings.
                report(entry.keyPosition, "another backend's name differs from \(quoted(entry.key)) in encoding only")
            }
            guard let backend = backend(name, entry, pluginDirectories: pluginDirectories),
                diagnostics.count == countBefore,
                !documentErrors.contains(where: { (entry.keyPosition..<entry.value.end).contains($0.position) })
            else { return nil }
            guard !pluginDirectories.areAll, case .plugin(let plugin) = backend.implementation else { return backend }
            return pluginDirectories.have(plugin) ? backend : nil
        }
    }

    private mutating func backend(
        _ name: String, _ entry: YAMLNode.Entry, pluginDirectories: PluginDirectories
    ) -> BackendConfiguration? {
        let what = "backend \(quoted(entry.key))"
        guard let fields = fields(entry.value, BackendKey.self) else { return nil }
        let implementation = implementation(fields, of: what, pluginDirectories: pluginDirectories)
        let isolation = isolation(fields)
        var limits = BackendConfiguration.Limits()
        if let node = fields[.limits] {
            if isolation == .inline {
                let position = fields.entries[.limits]?.keyPosition ?? node.position
                report(
                    position,
                    "limits need \"isolation: process\": they cannot be enforced on a plugin inside the daemon")
            }
            limits = self.limits(ofBackend: node)
        }
        let digest = fields[.sha256].flatMap { self.scalar($0, "64 hexadecimal digits", parse: Self.digest) }
        let options = fields[.options].map { self.options($0) }
        let cachesRecords = fields[.cache].flatMap { boolean($0) }
        guard let implementation, let implementationNode = fields[.plugin] ?? fields[.command] else { return nil }
        return BackendConfiguration(
            name: name, implementation: implementation, isolation: isolation ?? .inline,
            cachesRecords: cachesRecords ?? true, limits: limits, sha256: digest, options: options ?? Array("{}".utf8),
            position: entry.keyPosition,
            implementationPosition: implementationNode.position, optionsNode: fields[.options])
    }

    // MARK: Implementation

    private mutating func implementation(
        _ fields: Fields<BackendKey>, of what: String, pluginDirectories: PluginDirectories
    ) -> BackendConfiguration.Implementation? {
        switch (fields.entries[.plugin], fields.entries[.command]) {
        case (let plugin?, let command?):
            report(max(plugin.keyPosition, command.keyPosition), "a backend has either a plugin or a command, not both")
            return nil
        case (let plugin?, nil): return self.plugin(plugin.value, pluginDirectories: pluginDirectories)
        case (nil, let command?): return self.command(command.value)
        case (nil, nil):
            report(fields.position, "\(what) lacks the key \"plugin\" (or \"command\")")
            return nil
        }
    }

    private mutating func plugin(
        _ node: YAMLNode, pluginDirectories: PluginDirectories
    ) -> BackendConfiguration.Implementation? {
        guard let plugin = text(node, "the name or the absolute path of a plugin") else { return nil }
        if !plugin.contains("/") { return .plugin(plugin) }
        guard plugin.hasPrefix("/") else {
            report(node, expected: "the name or the absolute path of a plugin")
            return nil
        }
        if pluginDirectories.areAll, !pluginDirectories.have(plugin) {
            report(node.position, "\(quoted(plugin.utf8)) lies in none of the plugin directories")
        }
        return .plugin(plugin)
    }

    private mutating func command(_ node: YAMLNode) -> BackendConfiguration.Implementation? {
        let expected = "a list of words, an executable first"
        guard let elements = elements(node, expected) else { return nil }
        guard let first = elements.first else {
            report(node, expected: expected)
            return nil
        }
        let executable = absolutePath(first)
        let arguments = elements.dropFirst().compactMap { element in
            scalar(element, "a word") { $0.contains(0) ? nil : String(decoding: $0, as: UTF8.self) }
        }
        return executable.map { .command([$0] + arguments) }
    }

    /// Nil where the file's value is invalid.
    private mutating func isolation(_ fields: Fields<BackendKey>) -> BackendConfiguration.Isolation? {
        let isCommand = fields[.command] != nil
        guard let node = fields[.isolation] else { return isCommand ? .process : .inline }
        guard let isolation: BackendConfiguration.Isolation = choice(node, "isolation") else { return nil }
        if isCommand, isolation == .inline {
            report(node.position, "a command is always a process of its own")
            return nil
        }
        return isolation
    }

    private mutating func limits(ofBackend node: YAMLNode) -> BackendConfiguration.Limits {
        guard let fields = fields(node, BackendLimitsKey.self) else {
            return BackendConfiguration.Limits()
        }
        return BackendConfiguration.Limits(
            memoryBytes: quantity(fields[.memory], .size, in: LimitDefinitions.childMemory),
            callTimeout: quantity(fields[.callTimeout], .duration, in: LimitDefinitions.anyDuration)
                .map { .microseconds($0) })
    }

    // MARK: Options

    private static func digest(_ text: [UInt8]) -> String? {
        let digits = String(decoding: text, as: UTF8.self)
        return text.count == 64 && digits.utf8.count == 64 && digits.allSatisfy { $0.isASCII && $0.isHexDigit }
            ? digits.lowercased() : nil
    }

    /// The options as JSON.
    private mutating func options(_ node: YAMLNode) -> [UInt8] {
        guard entries(node, "a mapping of options ({} for none)") != nil else { return [] }
        var encoder = OptionsEncoder()
        encoder.encode(node)
        for diagnostic in encoder.diagnostics { report(diagnostic.position, diagnostic.message) }
        return encoder.json
    }
}
