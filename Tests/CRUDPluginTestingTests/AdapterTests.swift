import CRUDTestSupport
import Testing

/// Every adapter keeps the plugin contract, in every format.
@Suite struct AdapterTests {
    /// `$DIRECTORY` stands for a directory of its own.
    static let adapters = [
        ("memory", ""), ("memory", "{max_bytes: 64MiB}"), ("filesystem", "directory: $DIRECTORY/files"),
        ("filesystem", "{directory: $DIRECTORY/files, fsync: false}"), ("sqlite", "path: $DIRECTORY/main.sqlite"),
        ("sqlite", "{path: $DIRECTORY/main.sqlite, synchronous: normal}"), ("userdefaults", "suite: com.example.check"),
    ]

    @Test(arguments: adapters)
    func keepsTheContract(adapter: String, options: String) throws {
        let checked = try CheckedPlugin(product: adapter)
        let outcome = try checked.check(options: options)
        let failures = outcome.output.split(separator: "\n").filter { !$0.hasPrefix("ok ") && !$0.hasPrefix("- ") }
        #expect(outcome.status == .exited(0), "\(failures.joined(separator: "\n"))\n\(outcome.errors)")
        // Nothing is left but what the adapter itself needs.
        for format in ["json", "xml", "plist"] {
            for check in ["preconditions", "odd ids", "large items", "reopening after kill -9"] {
                #expect(outcome.output.contains("ok      \(format): \(check)\n"))
            }
        }
    }
}
