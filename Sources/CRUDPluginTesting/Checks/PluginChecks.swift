import CRUDJSON
import CRUDPluginABI
import Glibc

/// The plugin, while no storage was opened yet.
enum PluginChecks {
    private static let capabilities =
        CRUDD_CAN_READ_CONCURRENTLY | CRUDD_CAN_READ_FAST | CRUDD_HAS_TRANSACTIONS | CRUDD_IS_DURABLE
        | CRUDD_HAS_INDEXES | CRUDD_HAS_SEQUENCES | CRUDD_HAS_EXPIRY | CRUDD_TAKES_HISTORY
        | CRUDD_IS_SHARED

    static func table(_ context: CheckContext) throws {
        let table = context.plugin.table.pointee
        context.expect(table.abi_version, is: CRUDD_ABI_VERSION, "abi_version")
        context.expect(!context.plugin.name.isEmpty, "the plugin has no name")
        context.expect(!context.plugin.version.isEmpty, "the plugin has no version")
        context.expect(table.capabilities & ~UInt64(capabilities), is: 0, "capabilities that do not exist")
        checkDependencies(table.capabilities, context)
        let numbersItself = UInt64(CRUDD_IS_SHARED | CRUDD_HAS_SEQUENCES)
        let functions = [
            ("check_options", table.check_options != nil), ("open", table.open != nil), ("close", table.close != nil),
            ("open_collection", table.open_collection != nil), ("drop_collection", table.drop_collection != nil),
            ("list_collections", table.list_collections != nil), ("open_reader", table.open_reader != nil),
            ("close_reader", table.close_reader != nil), ("read", table.read != nil), ("scan", table.scan != nil),
            ("count", table.count != nil), ("write", table.write != nil),
            (
                "remove_expired",
                table.remove_expired != nil || table.capabilities & UInt64(CRUDD_HAS_EXPIRY) == 0
            ),
            ("trim_history", table.trim_history != nil || table.capabilities & UInt64(CRUDD_HAS_SEQUENCES) == 0),
            ("take_history", table.take_history != nil || table.capabilities & UInt64(CRUDD_TAKES_HISTORY) == 0),
            ("read_history", table.read_history != nil || table.capabilities & numbersItself != numbersItself),
        ]
        for (name, isThere) in functions { context.expect(isThere, "the table has no function \(name)") }
    }

    /// Fast reads need concurrent ones, and a history sequence numbers.
    static func checkDependencies(_ capabilities: UInt64, _ context: CheckContext) {
        context.expect(
            capabilities & UInt64(CRUDD_CAN_READ_FAST) == 0 || capabilities & UInt64(CRUDD_CAN_READ_CONCURRENTLY) != 0,
            "CRUDD_CAN_READ_FAST is declared without CRUDD_CAN_READ_CONCURRENTLY")
        context.expect(
            capabilities & UInt64(CRUDD_TAKES_HISTORY) == 0 || capabilities & UInt64(CRUDD_HAS_SEQUENCES) != 0,
            "CRUDD_TAKES_HISTORY is declared without CRUDD_HAS_SEQUENCES")
    }

    /// The options that are given are valid, and checking them changes nothing at the paths among them.
    static func options(_ context: CheckContext) throws {
        let paths = absolutePaths(in: context.options)
        let before = paths.map(state)
        let error = context.plugin.error(inOptions: context.options)
        context.expect(error == nil, "the options that were given: \(error.map { "\($0)" } ?? "")")
        for (path, state) in zip(paths, before) {
            context.expect(self.state(of: path), is: state, "\(path) has been touched")
        }
    }

    /// Whatever the options are, the plugin's failure is well-formed.
    static func oddOptions(_ context: CheckContext) throws {
        let long = String(repeating: "\u{1F600}", count: 2000)
        for options in [#"{"crudd-check": true}"#, #"{"\#(long)": "\#(long)"}"#, #"{"a/b~c": {"d": [null, 1e999]}}"#] {
            guard let error = context.plugin.error(inOptions: options) else { continue }
            context.expect(error.status == CRUDD_INVALID_OPTIONS, "\(Excerpt(options)): \(error)")
            context.expect(
                error.pointer.isEmpty || error.pointer.hasPrefix("/"),
                "\(Excerpt(options)): \"\(error.pointer)\" is not a JSON pointer")
        }
    }

    // MARK: Paths

    /// The strings among the options that look like paths, and their directories.
    static func absolutePaths(in options: String) -> [String] {
        let text = Array(options.utf8)
        var scanner = JSONScanner()
        var paths: [String] = []
        do {
            scanner.enter()
            var isFirst = true
            while try scanner.nextKey(text.span, isFirst: &isFirst) != nil {
                let value = try scanner.value(text.span)
                guard value.kind == .string else { continue }
                let path = String(decoding: value.decodedString(text.span), as: UTF8.self)
                guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/") else { continue }
                paths += [path, String(path[..<slash])]
            }
        } catch {
            // The plugin has already reported what is wrong with them.
        }
        return paths
    }

    /// What changes whenever something at a path does; empty if nothing is there.
    private static func state(of path: String) -> [Int] {
        var status = stat()
        guard lstat(path, &status) == 0 else { return [] }
        return [
            Int(status.st_ino), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
        ]
    }
}
