import CRUDPluginABI
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDPluginHost

/// A shared object is a plugin if it speaks our version of the contract, all of it.
@Suite struct PluginLoadingTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func load(_ name: String) throws -> Plugin {
        try Plugin.load(PluginFile(named: name, in: [directory.path], sha256: nil))
    }

    /// The error that loading a plugin comes to which is compiled from this text.
    private func error(_ text: String) throws -> String {
        try CompiledPlugin.compile(text: text, to: "\(directory.path)/faulty.so")
        return try #require(throws: PluginLoadingError.self) { _ = try load("faulty") }.description
    }

    /// A plugin whose table is whole but for what `change` does to it.
    private func source(changedBy change: String) -> String {
        """
        #include <crudd_plugin.h>
        #include <string.h>
        static crudd_status any() { return CRUDD_OK; }
        static crudd_status options(crudd_bytes options, crudd_failure *failure) {
            if (options.size == 2) return CRUDD_OK;
            strcpy(failure->message, "no");
            strcpy(failure->pointer, "/a");
            return CRUDD_INVALID_OPTIONS;
        }
        const crudd_plugin *crudd_plugin_entry(void) {
            static crudd_plugin plugin = {
                sizeof plugin, CRUDD_ABI_VERSION, "p", "1", 0, (void *)any, (void *)any, (void *)any, (void *)any,
                (void *)any, (void *)any, (void *)any, (void *)any, (void *)any, (void *)any, (void *)any, (void *)any,
                (void *)any, (void *)any, (void *)any};
            \(change)
            return &plugin;
        }
        """
    }

    /// Its code would not run: what is loaded stays until the process ends.
    @Test func aFileThatTakesThePlaceOfALoadedOneIsRefused() throws {
        let path = "\(directory.path)/again.so"
        try CompiledPlugin.compile(text: source(changedBy: ""), to: path)
        #expect(try load("again").version == "1")
        #expect(try load("again").version == "1")
        try CompiledPlugin.compile(text: source(changedBy: #"plugin.version = "2";"#), to: path + ".new")
        try #require(rename(path, path + ".old") == 0 && rename(path + ".new", path) == 0)
        let error = try #require(throws: PluginLoadingError.self) { _ = try load("again") }
        #expect(error.description == "\(path) has changed since it was loaded: restart the daemon to use it")
    }

    @Test func aLoadedFileThatIsWrittenToIsRefused() throws {
        let path = "\(directory.path)/written.so"
        try CompiledPlugin.compile(text: source(changedBy: ""), to: path)
        _ = try load("written")
        // As it was, but it may have been anything meanwhile.
        let status = try #require(Files.status(path))
        let file = Descriptor(owning: open(path, O_WRONLY | O_APPEND | O_CLOEXEC))
        #expect(write(file.number, "\n", 1) == 1 && ftruncate(file.number, status.st_size) == 0)
        #expect(futimens(file.number, [status.st_atim, status.st_mtim]) == 0)
        let error = try #require(throws: PluginLoadingError.self) { _ = try load("written") }
        #expect(error.description.contains("restart the daemon"))
    }

    @Test func aFileThatIsNoPluginStaysLoadedToo() throws {
        let path = "\(directory.path)/repaired.so"
        try CompiledPlugin.compile(text: "int something;", to: path)
        #expect(throws: PluginLoadingError.self) { try load("repaired") }
        try CompiledPlugin.compile(text: source(changedBy: ""), to: path + ".new")
        try #require(rename(path + ".new", path) == 0)
        let error = try #require(throws: PluginLoadingError.self) { _ = try load("repaired") }
        #expect(error.description.contains("restart the daemon"))
    }

    /// Between the check and the end of loading it: here by its own initializer.
    @Test func aFileThatIsReplacedWhileItIsLoadedIsRefused() throws {
        let path = "\(directory.path)/moving.so"
        let initializer = """
            #include <stdio.h>
            __attribute__((constructor)) static void move(void) { rename("\(path).new", "\(path)"); }
            """
        try CompiledPlugin.compile(text: initializer + "\n" + source(changedBy: ""), to: path)
        try CompiledPlugin.compile(text: source(changedBy: ""), to: path + ".new")
        let error = try #require(throws: PluginLoadingError.self) { _ = try load("moving") }
        #expect(error.description == "\(path) has been replaced while it was being loaded")
        #expect(throws: PluginLoadingError.self, "it stays loaded") { try load("moving") }
    }

    @Test func tellsWhatItHasLoaded() throws {
        let change = """
            plugin.capabilities = CRUDD_CAN_READ_CONCURRENTLY | CRUDD_HAS_TRANSACTIONS | 1ull << 40;
            plugin.check_options = (void *)options;
            """
        try CompiledPlugin.compile(text: source(changedBy: change), to: "\(directory.path)/told.so")
        let plugin = try load("told")
        #expect(plugin.name == "told")
        #expect(plugin.version == "1")
        #expect(plugin.path == "\(directory.path)/told.so")
        #expect(
            plugin.capabilities == [.concurrentReads, .transactions], "what this host does not know is left out")
        #expect(!plugin.isChild && !plugin.isCommand)
        #expect(plugin.check(options: Array("{}".utf8)).failures.isEmpty)
        let failure = try #require(plugin.check(options: Array("{1}".utf8)).failures.first)
        #expect(failure.isFinal && failure.isAboutOptions && failure.pointer == "/a" && failure.message == "no")
        #expect(plugin.check(options: Array("{}".utf8)).failures.isEmpty)
    }

    @Test(arguments: [
        ("", 12), ("plugin.capabilities_with = left;", 4),
        ("plugin.capabilities_with = left; plugin.struct_size = offsetof(crudd_plugin, capabilities_with);", 12),
    ])
    func optionsTakeCapabilitiesAway(change: String, left: UInt64) throws {
        let function = """
            #include <crudd_plugin.h>
            #include <stddef.h>
            static uint64_t left(crudd_bytes options) { return options.size == 2 ? 4 | 1 << 5 : 0; }
            """
        let path = "\(directory.path)/p\(left)-\(change.utf8.count).so"
        try CompiledPlugin.compile(
            text: function + "\n" + source(changedBy: "plugin.capabilities = 12; \(change)"), to: path)
        let check = try load(path).check(options: Array("{}".utf8))
        #expect(check.failures.isEmpty && check.capabilities?.rawValue == left)
    }

    @Test func whatIsNoSharedObject() throws {
        try Files.write("#!/bin/sh\n", to: "\(directory.path)/text.so")
        try Files.write("", to: "\(directory.path)/empty.so")
        for name in ["text", "empty"] {
            let error = try #require(throws: PluginLoadingError.self) { _ = try load(name) }
            #expect(error.description.contains("\(name).so cannot be loaded"))
        }
    }

    @Test func whatLacksASymbolThatItNeeds() throws {
        let error = try error("int missing(void); int crudd_plugin_entry(void) { return missing(); }")
        #expect(error.contains("cannot be loaded") && error.contains("missing"))
    }

    @Test func whatIsNoPlugin() throws {
        #expect(try error("int something(void) { return 1; }").contains("has no symbol crudd_plugin_entry"))
    }

    @Test func whatHasNoTable() throws {
        #expect(try error(source(changedBy: "return 0;")).contains("has no function table"))
    }

    @Test func whatIsWhole() throws {
        try CompiledPlugin.compile(text: source(changedBy: ""), to: "\(directory.path)/whole.so")
        #expect(try load("whole").version == "1")
    }

    /// What may be left out, and what a later version may add.
    @Test(arguments: [
        "plugin.end_snapshot = 0;", "plugin.data_version = 0;", "plugin.idle = 0;", "plugin.struct_size += 64;",
        "plugin.capabilities = ~(uint64_t)0;",
    ])
    func whatIsWholeEnough(change: String) throws {
        try CompiledPlugin.compile(text: source(changedBy: change), to: "\(directory.path)/whole.so")
        #expect(throws: Never.self) { try load("whole") }
    }

    /// A table may end behind `write`, and only there: what it lacks is NULL for the host, whatever follows it in
    /// memory.
    @Test func aShortTableLacksWhatIsOptional() throws {
        let change = "plugin.struct_size = __builtin_offsetof(crudd_plugin, end_snapshot);"
        try CompiledPlugin.compile(text: source(changedBy: change), to: "\(directory.path)/short.so")
        let table = try load("short").table
        #expect(Int(table.pointee.struct_size) == MemoryLayout<crudd_plugin>.size)
        #expect(table.pointee.write != nil)
        #expect(table.pointee.end_snapshot == nil && table.pointee.data_version == nil && table.pointee.idle == nil)
        let longer = "plugin.struct_size = __builtin_offsetof(crudd_plugin, idle);"
        try CompiledPlugin.compile(text: source(changedBy: longer), to: "\(directory.path)/longer.so")
        let longerTable = try load("longer").table
        #expect(longerTable.pointee.data_version != nil && longerTable.pointee.idle == nil)
    }

    @Test(arguments: [0, 1, 3, UInt32.max])
    func anotherVersion(version: UInt32) throws {
        // Nothing else of such a table may be looked at: here there is nothing else.
        let error = try error(
            """
            #include <stdint.h>
            static const uint32_t table[2] = {8, \(version)u};
            const void *crudd_plugin_entry(void) { return table; }
            """)
        #expect(error.contains("speaks version \(version)") && error.contains("speaks version \(CRUDD_ABI_VERSION)"))
    }

    @Test(
        arguments: [
            "struct_size = 0", "struct_size = 8", "name = 0", "version = 0",
            "struct_size = __builtin_offsetof(crudd_plugin, end_snapshot) - 1",
        ]
            + [
                "check_options", "open", "close", "open_collection", "drop_collection", "list_collections",
                "open_reader", "close_reader", "read", "scan", "count", "write",
            ].map { "\($0) = 0" })
    func whatIsIncomplete(change: String) throws {
        #expect(try error(source(changedBy: "plugin.\(change);")).contains("lacks"))
    }

    @Test func fastReadsNeedConcurrentOnes() throws {
        let change = "plugin.capabilities = CRUDD_CAN_READ_FAST;"
        #expect(try error(source(changedBy: change)).contains("fast reads without concurrent reads"))
    }
}
