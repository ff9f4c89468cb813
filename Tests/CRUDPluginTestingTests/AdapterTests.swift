import CRUDTestSupport
import Testing

/// Every adapter conforms to the plugin contract, in every format.
/// One after the other, as each keeps the disk busy.
@Suite(.serialized) struct AdapterTests {
    /// `$DIRECTORY` stands for a directory of its own.
    static let adapters = [
        ("memory", "{max_bytes: 64MiB}"), ("memory", "log: $DIRECTORY/log"),
        ("filesystem", "directory: $DIRECTORY/files"),
        ("sqlite", "path: $DIRECTORY/main.sqlite"), ("userdefaults", "suite: com.example.check"),
    ]

    @Test(arguments: adapters, [false, true])
    func conforms(adapter: (product: String, options: String), inChild: Bool) throws {
        try check(CheckedPlugin(product: adapter.product), adapter.options, inChild: inChild)
    }

    @Test(arguments: [("memory.c", "", false), ("memory.c", "", true), ("store.py", "path: $DIRECTORY/store.db", true)])
    func conformsAsAnExample(file: String, options: String, inChild: Bool) throws {
        try check(CheckedPlugin(example: file), options, inChild: inChild)
    }

    @Test(arguments: [false, true])
    func conformsAsItIsDocumented(inChild: Bool) throws {
        try check(
            CheckedPlugin(documented: "Sources/CRUDPluginABI/README.md"), "path: $DIRECTORY/journal", inChild: inChild)
    }

    /// Options that take something away.
    @Test(arguments: [
        ("filesystem", "{directory: $DIRECTORY/files, fsync: false}"),
        ("sqlite", "{path: $DIRECTORY/main.sqlite, synchronous: normal}"),
    ])
    func conformsWithFewerCapabilities(product: String, options: String) throws {
        try check(CheckedPlugin(product: product), options, inChild: false)
    }

    private func check(_ plugin: CheckedPlugin, _ options: String, inChild: Bool) throws {
        let outcome = try plugin.check(options: options, inChild: inChild)
        let failures = outcome.output.split(separator: "\n").filter { !$0.hasPrefix("ok ") && !$0.hasPrefix("- ") }
        #expect(outcome.status == .exited(0), "\(failures.joined(separator: "\n"))\n\(outcome.errors)")
        for format in ["json", "xml", "plist"] {
            for check in ["preconditions", "odd ids", "large items", "reopening after kill -9"] {
                #expect(outcome.output.contains("ok      \(format): \(check)\n"))
            }
        }
    }
}
