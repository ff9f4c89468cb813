public import CRUDPluginABI
import CRUDPluginKit

@c @implementation
public func crudd_plugin_entry() -> UnsafePointer<crudd_plugin>? {
    PluginTable.export(SQLiteBackend.self)
}
