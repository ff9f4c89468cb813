package import CRUDPluginABI
package import CRUDPluginTesting
import CRUDTestSupport
import Glibc

extension ExportedPlugin {
    /// The plugin that the build has made.
    ///
    /// - Parameter product: such as `memory`; its library lies where the tests run.
    package convenience init(_ product: String) throws {
        try self.init(path: BuildProducts.path(of: "lib\(product).so"))
    }

    package convenience init(path: String) throws {
        self.init(try Self.table(path: path))
    }

    /// The table that a library exports, which is the plugin's own.
    package static func table(path: String) throws -> UnsafePointer<crudd_plugin> {
        guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL), let symbol = dlsym(library, "crudd_plugin_entry")
        else {
            throw Failure("\(path): \(String(cString: dlerror()))")
        }
        typealias Entry = @convention(c) () -> UnsafePointer<crudd_plugin>?
        // The header says that the symbol is such a function.
        guard let table = unsafe unsafeBitCast(symbol, to: Entry.self)() else { throw Failure("\(path) has no table") }
        return table
    }
}
