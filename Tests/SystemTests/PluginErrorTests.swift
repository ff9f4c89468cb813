import CRUDTestSupport
import Glibc
import Testing

/// Plugins that crudd must not load, options that it must not pass on.
@Suite struct PluginErrorTests {
    @Test func aMissingFile() throws {
        try expectError(backend: "{plugin: sqlight, options: {}}", word: "sqlight") { _ in }
    }

    @Test func aFileThatIsNoSharedObject() throws {
        try expectError(backend: "{plugin: text, options: {}}", word: "text.so") { installation in
            try Files.write("no plugin\n", to: "\(installation.pluginDirectory)/text.so", mode: 0o755)
        }
    }

    @Test func aDirectoryInItsPlace() throws {
        try expectError(backend: "{plugin: folder, options: {}}", word: "folder.so") { installation in
            try Files.makeDirectory("\(installation.pluginDirectory)/folder.so")
        }
    }

    @Test func aSharedObjectWithoutTheSymbol() throws {
        try expectErrorOfCompiledPlugin("int something_else(void) { return 1; }")
    }

    @Test(arguments: [
        "return 0;", "plugin.abi_version = 0;", "plugin.abi_version = CRUDD_ABI_VERSION + 1;",
        "plugin.struct_size = 0;", "plugin.struct_size = 8;", "plugin.check_options = 0;", "plugin.open = 0;",
        "plugin.write = 0;",
    ])
    func aTableThatIsWrong(error: String) throws {
        try expectErrorOfCompiledPlugin(
            """
            #include <crudd_plugin.h>
            static crudd_status any() { return CRUDD_OK; }
            static crudd_plugin plugin = {
                sizeof(crudd_plugin), CRUDD_ABI_VERSION, "wrong", "1", 0, (void *)any, (void *)any, (void *)any,
                (void *)any, (void *)any, (void *)any, (void *)any, (void *)any, (void *)any, (void *)any, (void *)any,
                (void *)any, (void *)any, (void *)any};
            const crudd_plugin *crudd_plugin_entry(void) { \(error) return &plugin; }
            """)
    }

    @Test(arguments: [0o777, 0o757, 0o775, 0o722])
    func aFileThatOthersMayWrite(mode: Int) throws {
        try expectError(word: "sqlite.so") { installation in
            try Files.setMode(mode_t(mode), of: "\(installation.pluginDirectory)/sqlite.so")
        }
    }

    @Test(arguments: [0o777, 0o757, 0o775])
    func aDirectoryThatOthersMayWrite(mode: Int) throws {
        try expectError(word: "plugins") { installation in
            try Files.setMode(mode_t(mode), of: installation.pluginDirectory)
        }
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to give a file away"))
    func aFileOfAnotherOwner() throws {
        try expectError(word: "sqlite.so") { installation in
            #expect(chown("\(installation.pluginDirectory)/sqlite.so", 65534, 65534) == 0)
        }
    }

    @Test(arguments: ["$DIRECTORY/elsewhere.so", "../elsewhere", "$DIRECTORY/plugins/../elsewhere.so"])
    func aPathOutsideTheDirectories(path: String) throws {
        try expectError(backend: "{plugin: \(path), options: {path: $DIRECTORY/main.sqlite}}", word: "elsewhere") {
            try Files.copy("\($0.pluginDirectory)/sqlite.so", to: "\($0.path)/elsewhere.so", mode: 0o755)
        }
    }

    @Test func aPathInsideTheDirectoriesIsFine() throws {
        let backend = "main: {plugin: $DIRECTORY/plugins/sqlite.so, options: {path: $DIRECTORY/main.sqlite}}"
        let daemon = try Daemon(Configuration(backends: backend))
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
    }

    @Test func everyDirectoryIsSearched() throws {
        let installation = try Installation(Configuration(pluginDirectories: "$DIRECTORY/empty, $DIRECTORY/plugins"))
        try Files.makeDirectory("\(installation.path)/empty")
        #expect(try Daemon(on: installation).connect().isUsable())
    }

    @Test func theDigestMustMatch() throws {
        let installation = try Installation()
        let file = "\(installation.pluginDirectory)/sqlite.so"
        let digest = String(try Command.run("sha256sum", [file]).output.prefix(64))
        func backend(_ digest: String) -> String {
            "main: {plugin: sqlite, sha256: \(digest), options: {path: $DIRECTORY/main.sqlite}}"
        }
        try installation.configure(Configuration(backends: backend(digest)))
        #expect(try Daemon(on: installation).connect().isUsable())
        let wrong = (digest.hasPrefix("0") ? "1" : "0") + digest.dropFirst()
        try installation.configure(Configuration(backends: backend(wrong)))
        for outcome in [try installation.check(), try installation.startInVain()] {
            #expect(outcome.status == .exited(78))
            #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
            #expect(outcome.errors.contains("sqlite.so"))
        }
    }

    @Test func wrongOptionsHaveTheirPlace() throws {
        let cases = [
            ("{path: $DIRECTORY/main.sqlite, ¶pth: x}", "pth"), ("{path: ¶5}", "path"), ("{path: ¶[a]}", "path"),
            ("{synchronous: ¶sometimes, path: $DIRECTORY/main.sqlite}", "synchronous"),
            ("{\n      path: $DIRECTORY/main.sqlite,\n      synchronous: ¶7}", "synchronous"),
        ]
        for (options, word) in cases {
            let marked = MarkedText(Configuration(backends: "main:\n  plugin: sqlite\n  options: \(options)").text)
            let installation = try Installation(text: marked.text)
            for outcome in [try installation.check(), try installation.startInVain()] {
                #expect(outcome.status == .exited(78))
                #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
                // An option's error points at its key or at its value.
                let line = marked.positions[0].split(separator: ":")[0]
                #expect(outcome.errors.hasPrefix("\(installation.configurationFile):\(line):"), "\(outcome.errors)")
                #expect(outcome.errors.contains(word))
            }
        }
    }

    @Test func missingOptionsAreNamed() throws {
        for backend in ["main: {plugin: sqlite, options: {}}", "main: {plugin: sqlite}"] {
            let outcome = try Installation(Configuration(backends: backend)).check()
            #expect(outcome.status == .exited(78))
            #expect(outcome.errors.contains("path"), "\(outcome.errors)")
        }
    }

    private func expectErrorOfCompiledPlugin(_ source: String) throws {
        try expectError(backend: "{plugin: compiled, options: {}}", word: "compiled") { installation in
            let headers = "\(BuildProducts.packageDirectory)/Sources/CRUDPluginABI/include"
            let file = "\(installation.pluginDirectory)/compiled.so"
            let outcome = try Command.run(
                "cc", ["-shared", "-fPIC", "-w", "-I", headers, "-x", "c", "-", "-o", file], input: source)
            try #require(outcome.status == .exited(0), "\(outcome.errors)")
            try Files.setMode(0o755, of: file)
        }
    }

    /// Expects one clear line and 78, from the check as well as from the start.
    private func expectError(
        backend: String = "{plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}", word: String,
        arrange: (Installation) throws -> Void
    ) throws {
        let installation = try Installation(Configuration(backends: "main: \(backend)"))
        try arrange(installation)
        for outcome in [try installation.check(), try installation.startInVain()] {
            #expect(outcome.status == .exited(78), "\(outcome.errors)")
            #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
            #expect(outcome.errors.contains(word), "\(outcome.errors)")
        }
    }
}
