import CRUDTestSupport
import Testing

/// Every adapter keeps the plugin contract, in every format.
@Suite struct AdapterTests {
    /// `$DIRECTORY` stands for a directory of its own.
    static let adapters = [
        ("memory", "{max_bytes: 64MiB}"), ("filesystem", "directory: $DIRECTORY/files"),
        ("sqlite", "path: $DIRECTORY/main.sqlite"), ("userdefaults", "suite: com.example.check"),
    ]

    @Test(arguments: adapters, [false, true])
    func keepsTheContract(adapter: (product: String, options: String), inChild: Bool) throws {
        try check(adapter, inChild: inChild)
    }

    /// Options that take something away.
    @Test(arguments: [
        ("filesystem", "{directory: $DIRECTORY/files, fsync: false}"),
        ("sqlite", "{path: $DIRECTORY/main.sqlite, synchronous: normal}"),
    ])
    func keepsTheContractWithLess(product: String, options: String) throws {
        try check((product, options), inChild: false)
    }

    private func check(_ adapter: (product: String, options: String), inChild: Bool) throws {
        let outcome = try CheckedPlugin(product: adapter.product).check(
            options: adapter.options, inChild: inChild)
        let failures = outcome.output.split(separator: "\n").filter { !$0.hasPrefix("ok ") && !$0.hasPrefix("- ") }
        #expect(outcome.status == .exited(0), "\(failures.joined(separator: "\n"))\n\(outcome.errors)")
        for format in ["json", "xml", "plist"] {
            for check in ["preconditions", "odd ids", "large items", "reopening after kill -9"] {
                #expect(outcome.output.contains("ok      \(format): \(check)\n"))
            }
        }
    }
}
