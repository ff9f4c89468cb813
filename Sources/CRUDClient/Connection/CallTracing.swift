import CRUDModel

#if Tracing
import Tracing
#endif

/// What a call is about, as its span tells.
struct CallSubject: Sendable {
    /// Nil: none, or several.
    var collection: String?
    /// How many operations a batch has; nil for what is not one.
    var operationCount: Int?
}

/// Makes a span for each call, by OpenTelemetry's
/// [conventions for databases](https://opentelemetry.io/docs/specs/semconv/db/database-spans/); nothing without the
/// package trait `Tracing`.
///
/// No span has an id of a record, an item or a filter.
struct CallTracing: Sendable {
    #if Tracing
    /// Nil: that of the process.
    let tracer: (any Tracer)?
    #endif

    /// Begins the span of a call.
    ///
    /// - Parameter path: of the daemon's socket.
    func begin(_ method: RemoteMethod, on subject: CallSubject, at path: String) -> CallSpan {
        #if Tracing
        let tracer = tracer ?? InstrumentationSystem.tracer
        let instrument: any Instrument = self.tracer ?? InstrumentationSystem.instrument
        let name = subject.collection.map { "\(method.name) \($0)" } ?? method.name
        let span: any Tracing.Span = tracer.startSpan(name, ofKind: .client)
        if span.isRecording {
            span.updateAttributes { attributes in
                attributes["db.system.name"] = "crudd"
                attributes["db.operation.name"] = method.name
                attributes["server.address"] = path
                if let collection = subject.collection { attributes["db.collection.name"] = collection }
                if let count = subject.operationCount, count > 1 { attributes["db.operation.batch.size"] = count }
            }
        }
        var traceparent: String?
        instrument.inject(span.context, into: &traceparent, using: TraceParentInjector())
        return CallSpan(span: span, traceparent: traceparent)
        #else
        return CallSpan()
        #endif
    }
}

/// The span of one call, which is ended once.
struct CallSpan {
    #if Tracing
    fileprivate let span: any Tracing.Span
    /// What the daemon is told of the trace; nil where the instruments of the process do not speak W3C Trace Context.
    let traceparent: String?

    func end() { span.end() }

    func end(throwing error: any Error) {
        let code = (error as? CRUDError)?.code
        if span.isRecording {
            span.updateAttributes { attributes in
                attributes["error.type"] = code?.name ?? String(reflecting: type(of: error))
                if let code { attributes["db.response.status_code"] = String(code.rawValue) }
            }
            // Without the error's message, which names records.
            span.setStatus(SpanStatus(code: .error))
        }
        span.end()
    }
    #else
    var traceparent: String? { nil }

    func end() {}
    func end(throwing error: any Error) {}
    #endif
}

#if Tracing
/// Takes the one value that a request has room for.
private struct TraceParentInjector: Injector {
    func inject(_ value: String, forKey key: String, into carrier: inout String?) {
        if key.lowercased() == "traceparent" { carrier = value }
    }
}
#endif
