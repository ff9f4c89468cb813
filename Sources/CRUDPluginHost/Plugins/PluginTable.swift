import CRUDPluginABI

/// The function table of a shared object, as this host sees it.
enum PluginTable {
    /// Copies a table into one of ours, where the functions that it lacks are NULL.
    ///
    /// - Parameters:
    ///   - table: lives as long as the process.
    ///   - path: of the shared object, for messages.
    /// - Returns: a table that lives as long as the process.
    /// - Throws: ``PluginLoadingError`` for another version of the contract, and a table that lacks what all must have.
    static func adopt(
        _ table: UnsafePointer<crudd_plugin>, of path: String
    ) throws(PluginLoadingError) -> UnsafePointer<crudd_plugin> {
        // Size and version come first in every version; the version decides whether anything else may be looked at.
        let header = UnsafeRawPointer(table).assumingMemoryBound(to: (size: UInt32, version: UInt32).self).pointee
        guard header.version == CRUDD_ABI_VERSION else {
            throw PluginLoadingError(
                "\(path) speaks version \(header.version) of the plugin contract; this crudd speaks version "
                    + "\(CRUDD_ABI_VERSION)")
        }
        var copy = crudd_plugin.read(table)
        guard header.size >= requiredBytes, isComplete(copy) else {
            throw PluginLoadingError("\(path) lacks a name, a version or functions of the plugin contract")
        }
        var capabilities = Plugin.Capabilities(rawValue: copy.capabilities)
        // A capability without its function is none.
        if copy.remove_expired == nil { capabilities.remove(.expiry) }
        if copy.trim_history == nil { capabilities.remove(.sequences) }
        if copy.take_history == nil || !capabilities.contains(.sequences) { capabilities.remove(.takesHistory) }
        copy.capabilities = capabilities.rawValue
        if copy.step_backup == nil || copy.end_backup == nil { copy.begin_backup = nil }
        return keep(copy)
    }

    /// Gives a table a place that lives as long as the process.
    static func keep(_ table: crudd_plugin) -> UnsafePointer<crudd_plugin> {
        let place = UnsafeMutablePointer<crudd_plugin>.allocate(capacity: 1)
        place.initialize(to: table)
        place.pointee.struct_size = UInt32(MemoryLayout<crudd_plugin>.size)
        return UnsafePointer(place)
    }

    /// A table must reach up to here: what follows is optional.
    private static let requiredBytes = MemoryLayout<crudd_plugin>.offset(of: \.end_snapshot) ?? 0

    private static func isComplete(_ table: crudd_plugin) -> Bool {
        table.name != nil && table.version != nil && table.check_options != nil && table.open != nil
            && table.close != nil && table.open_collection != nil && table.drop_collection != nil
            && table.list_collections != nil && table.open_reader != nil && table.close_reader != nil
            && table.read != nil && table.scan != nil && table.count != nil && table.write != nil
    }
}
