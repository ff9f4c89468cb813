import CRUDJSON
import CRUDModel
import CRUDQuery
import CRUDWire

/// A frame without its length, as clients send it: a request or a batch array, and whatever its parameters stand for.
enum RequestInput {
    private static let maximumDepth = 64
    private static let item = Array(#"{"a":1,"b":{"c":[1,2],"d":"x"},"e":null}"#.utf8)

    static func parse(_ input: Span<UInt8>) {
        var response = ResponseDecoder()
        _ = try? response.decode(input)
        var reader = RequestReader(maximumDepth: maximumDepth, maximumElements: 8)
        var request = Request()
        do throws(RequestError) {
            switch try reader.read(frame: input, into: &request) {
            case .request: parse(request, input)
            case .array(let elements):
                for element in elements {
                    try reader.read(element: element, of: input, into: &request)
                    parse(request, input)
                }
            }
        } catch {
            check(error.error)
        }
    }

    private static func check(_ error: CRUDError) {
        var writer = JSONWriter()
        error.write(to: &writer)
        requireJSON(writer.bytes.span, "an error object")
    }

    private static func parse(_ request: borrowing Request, _ text: Span<UInt8>) {
        do throws(CRUDError) {
            if let id = request.id { requireJSON(text.extracting(id.range), "an id") }
            if let operation = try Operation(request, of: text, maximumDepth: maximumDepth) {
                parse(operation, text)
            }
            if let operations = request[.operations] {
                for operation in operations.elements(text) ?? [] {
                    parse(try Operation(operation, of: text, maximumDepth: maximumDepth), text)
                }
            }
            try parseQuery(request, text)
        } catch {
            check(error)
        }
    }

    private static func parse(_ operation: Operation, _ text: Span<UInt8>) {
        applyFieldOperations(of: operation, text)
        guard let range = operation.value?.range else { return }
        let value = text.extracting(range)
        guard operation.kind == .patch else {
            var normalization = ItemNormalization()
            guard let normalized = normalization.normalized(value) else { return }
            requireJSON(normalized.span, "a normalized item")
            require(normalization.normalized(normalized.span) == nil, "a normalized item is normalized again")
            return
        }
        guard let patched = try? MergePatch.apply(value, to: item.span) else { fatalError("a patch is not applied") }
        requireJSON(patched.span, "a patched item")
    }

    private static func applyFieldOperations(of operation: Operation, _ text: Span<UInt8>) {
        let operations = operation.fieldOperations
        guard !operations.isEmpty else { return }
        guard var patch = try? FieldPatch(operations, of: text, maximumDepth: maximumDepth) else {
            fatalError("field operations that were accepted are rejected")
        }
        let patched: [UInt8]
        do throws(CRUDError) {
            patched = try patch.apply(to: item.span, text)
        } catch {
            return require(error.code == .unsupported, "field operations fail with \(error.code.name)")
        }
        requireJSON(patched.span, "an item after field operations")
    }

    private static func parseQuery(_ request: borrowing Request, _ text: Span<UInt8>) throws(CRUDError) {
        var query = Query()
        if let filter = request[.filter] {
            let filter = try Filter(cql2JSON: text.extracting(filter.range))
            FilterInput.check(filter)
            query.filter = filter
        }
        if let prefix = request[.prefix] { query.prefix = prefix.decodedString(text) }
        if let sort = request[.sort] { query.sort = try SortOrder(json: text.extracting(sort.range)) }
        if let fields = request[.fields] {
            let fields = try FieldProjection(json: text.extracting(fields.range))
            var output: [UInt8] = []
            do { try fields.append(of: item.span, to: &output) } catch { fatalError("valid JSON is not projected") }
            requireJSON(output.span, "a projected item")
            query.fields = fields
        }
        if let cursor = request[.cursor] {
            try query.resume(from: cursor.decodedString(text), in: Array("clients".utf8))
        }
        var writer = JSONWriter()
        query.write(to: &writer)
        do throws(CRUDError) { _ = try Query(json: writer.bytes.span) } catch {
            fatalError("a query is not read back: \(error.message)")
        }
    }
}
