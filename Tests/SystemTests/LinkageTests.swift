import CRUDTestSupport
import Testing

/// An application links no storage code, and neither does the daemon.
@Suite struct LinkageTests {
    @Test(arguments: ["demo-app", "crudctl"])
    func applicationsKnowNothingOfStorage(product: String) throws {
        let path = try BuildProducts.path(of: product)
        let libraries = try Command.run("ldd", [path])
        let symbols = try Command.run("nm", ["-D", path])
        #expect(libraries.status == .exited(0) && symbols.status == .exited(0))
        #expect(!symbols.output.isEmpty)
        for word in ["sqlite", "yaml", "crudd_plugin"] {
            for text in [libraries.output, symbols.output] {
                let lines = text.split(separator: "\n").filter { $0.lowercased().contains(word) }
                #expect(lines.isEmpty, "\(product): \(lines)")
            }
        }
    }

    @Test func theDaemonLinksNoDatabase() throws {
        let libraries = try Command.run("ldd", [BuildProducts.path(of: "crudd")])
        #expect(libraries.status == .exited(0))
        #expect(!libraries.output.lowercased().contains("sqlite"))
        let symbols = try Command.run("nm", ["-D", BuildProducts.path(of: "crudd")])
        #expect(!symbols.output.contains("sqlite3_"))
    }

    @Test func theDaemonAndThePluginLinkNoFoundation() throws {
        for product in ["crudd", "libsqlite.so"] {
            let libraries = try Command.run("ldd", [BuildProducts.path(of: product)])
            #expect(!libraries.output.contains("Foundation"), "\(product)")
        }
    }

    @Test func thePluginExportsItsEntry() throws {
        let symbols = try Command.run("nm", ["-D", "--defined-only", BuildProducts.path(of: "libsqlite.so")])
        #expect(symbols.output.split(separator: "\n").contains { $0.hasSuffix(" T crudd_plugin_entry") })
    }
}
