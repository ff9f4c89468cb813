import CRUDConfiguration
import CRUDModel

/// YAML: a configuration, or the options of a backend.
enum ConfigurationInput {
    static func parse(_ input: Span<UInt8>) {
        let bytes = input.withUnsafeBufferPointer { Array($0) }
        do throws(InvalidConfiguration) {
            let configuration = try Configuration(yaml: bytes, file: "f", environment: [:])
            require(configuration.changes(to: configuration).isEmpty, "a configuration is different from itself")
            for backend in configuration.backends { requireJSON(backend.options.span, "options") }
        } catch {
            require(!error.diagnostics.isEmpty, "a configuration is rejected without a reason")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { return }
        if let options = try? OptionsText.json(yaml: text, source: "f") { requireJSON(options.span, "options") }
    }
}
