/// Options of a backend that stand by themselves, as on a command line.
package enum OptionsText {
    /// The options as the JSON object that a plugin is given.
    ///
    /// - Parameters:
    ///   - yaml: a mapping; nothing at all stands for an empty one.
    ///   - source: what the faults call it.
    /// - Throws: ``InvalidConfiguration`` with every fault.
    package static func json(yaml: String, source: String) throws(InvalidConfiguration) -> [UInt8] {
        let composer = YAMLComposer(Array(yaml.utf8), file: source)
        guard composer.faults.isEmpty else { throw InvalidConfiguration(composer.faults) }
        guard let root = composer.root else { return Array("{}".utf8) }
        guard case .mapping = root.content else {
            throw InvalidConfiguration([
                ConfigurationFault(file: source, position: root.position, message: "options are a mapping")
            ])
        }
        var encoder = OptionsEncoder()
        encoder.encode(root)
        guard encoder.faults.isEmpty else {
            throw InvalidConfiguration(
                encoder.faults.map { ConfigurationFault(file: source, position: $0.position, message: $0.message) })
        }
        return encoder.json
    }
}
