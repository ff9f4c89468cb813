package import CRUDPluginABI
import CRUDTestSupport
import Glibc

/// A plugin as the host sees it: the function table that its shared object exports.
// The table is never written, and its functions may be called from any thread.
package final class ExportedPlugin: @unchecked Sendable {
    package let table: UnsafePointer<crudd_plugin>

    /// - Parameter product: such as `memory`; its library lies where the tests run.
    package init(_ product: String) throws {
        let path = try BuildProducts.path(of: "lib\(product).so")
        guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL), let symbol = dlsym(library, "crudd_plugin_entry")
        else {
            throw Failure("\(path): \(String(cString: dlerror()))")
        }
        typealias Entry = @convention(c) () -> UnsafePointer<crudd_plugin>?
        // The header says that the symbol is such a function.
        guard let table = unsafe unsafeBitCast(symbol, to: Entry.self)() else { throw Failure("\(path) has no table") }
        self.table = table
    }

    package var capabilities: UInt64 { table.pointee.capabilities }

    /// Has the plugin check options; nil if it finds no fault.
    package func fault(inOptions options: String) -> PluginFault? {
        do {
            try PluginFault.throwing { failure in
                withBytes(of: options) { table.pointee.check_options($0, failure) }
            }
            return nil
        } catch {
            return error
        }
    }
}

/// Why a call of a plugin did not answer CRUDD_OK.
package struct PluginFault: Error, Equatable {
    package let status: Int
    package let message: String
    package let pointer: String

    static func throwing(_ call: (UnsafeMutablePointer<crudd_failure>) -> crudd_status) throws(PluginFault) {
        var failure = crudd_failure()
        failure.struct_size = UInt32(MemoryLayout<crudd_failure>.size)
        let status = Int(call(&failure))
        guard status != CRUDD_OK else { return }
        throw PluginFault(
            status: status, message: text(of: &failure.message), pointer: text(of: &failure.pointer))
    }

    private static func text<Characters>(of characters: inout Characters) -> String {
        withUnsafeBytes(of: &characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// Lends the bytes of a text to a call.
func withBytes<Result>(of text: String, _ body: (crudd_bytes) -> Result) -> Result {
    withBytes(of: Array(text.utf8), body)
}

func withBytes<Result>(of bytes: [UInt8], _ body: (crudd_bytes) -> Result) -> Result {
    bytes.withUnsafeBufferPointer { body(crudd_bytes(data: $0.baseAddress, size: $0.count)) }
}

extension crudd_bytes {
    var text: String { String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self) }
}
