import CRUDModel

/// Options of a backend outside a configuration file, as on a command line.
package enum OptionsText {
    /// The options as the JSON object that a plugin gets.
    ///
    /// - Parameters:
    ///   - yaml: a mapping; an empty text stands for an empty one.
    ///   - source: the file's name in diagnostics.
    /// - Throws: ``InvalidConfiguration`` with every error.
    package static func json(yaml: String, source: String) throws(InvalidConfiguration) -> [UInt8] {
        let composer = YAMLComposer(Array(yaml.utf8), file: source)
        guard composer.diagnostics.isEmpty else { throw InvalidConfiguration(composer.diagnostics) }
        guard let root = composer.root else { return Array("{}".utf8) }
        guard case .mapping = root.content else {
            throw InvalidConfiguration([
                ConfigurationDiagnostic(file: source, position: root.position, message: "options must be a mapping")
            ])
        }
        var encoder = OptionsEncoder()
        encoder.encode(root)
        guard encoder.diagnostics.isEmpty else {
            throw InvalidConfiguration(
                encoder.diagnostics.map {
                    ConfigurationDiagnostic(file: source, position: $0.position, message: $0.message)
                })
        }
        return encoder.json
    }
}
