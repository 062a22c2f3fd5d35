# frozen_string_literal: true

require "net/http"
require "pando/sys"

module Pando
  module Measure
    # Several clients, each on its own thread. Each keeps a connection for some requests, and sends its next request as
    # soon as it has the answer. The order of the requests is fixed, so every server gets the same.
    class Client
      # The outcome of a request: the seconds until the last byte (nil: no complete answer came), and what was wrong, if
      # anything was.
      Answer = Struct.new(:request, :seconds, :status, :location, :trouble, keyword_init: true) do
        def redirected? = (300..399).cover?(status)
        def server_error? = (500..599).cover?(status)
      end

      # Requests on one connection. With more, a server whose workers own connections could leave a worker without any.
      KEPT_FOR = 20
      REPLY_WITHIN = 60 # seconds
      ADDRESS = "127.0.0.1"
      CLOSED = "the server closed the connection before the answer was complete"
      REFUSED = "the server refused the connection"

      def initialize(port, headers:, clients:)
        @port = port
        @headers = { "Host" => "#{ADDRESS}:#{port}", "User-Agent" => "pando measure", "Accept" => "*/*",
                     "Accept-Encoding" => "identity" }.then { |fields| merge(fields, headers) }
        @clients = clients
      end

      # Sends the requests, and returns when all are answered.
      # @param requests [Array<Doctor::Request>]
      # @return [Array<Answer>] in the order in which they came
      def run(requests)
        waiting = Queue.new
        requests.each { |request| waiting << request }
        waiting.close
        answers = Queue.new
        threads = Array.new([@clients, requests.size].min) { Thread.new { converse(waiting, answers) } }
        threads.each(&:join)
        Array.new(answers.size) { answers.pop }
      ensure
        threads&.each(&:kill)
      end

      private

      def converse(waiting, answers)
        until waiting.empty?
          http = connection
          KEPT_FOR.times { (request = waiting.pop) && answers.push(ask(http, request)) }
          http.finish if http.started?
        end
      end

      # It never sends a request twice: that would hide requests that the server drops.
      def connection
        http = Net::HTTP.new(ADDRESS, @port, nil)
        http.max_retries = 0
        http.open_timeout = http.read_timeout = http.keep_alive_timeout = REPLY_WITHIN
        http
      end

      def ask(http, request)
        began_at = Sys.now
        http.start unless http.started?
        reply = http.request(message(request), request.body) { |answer| read(answer, began_at + REPLY_WITHIN) }
        return failed(request, CLOSED) if cut_short?(request, reply)

        status = reply.code.to_i
        Answer.new(request: request, seconds: Sys.now - began_at, status: status, location: reply["location"],
                   trouble: ("status #{status}" if status >= 400))
      rescue Timeout::Error # Net::HTTP's own, too
        http.finish if http.started?
        failed(request, "no answer within #{REPLY_WITHIN} s")
      rescue Net::ProtocolError, Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError => e
        failed(request, "malformed answer: #{e.message}")
      rescue Errno::ECONNREFUSED then failed(request, REFUSED)
      rescue SystemCallError, IOError then failed(request, CLOSED)
      end

      # Reads the body. An answer that never ends must not hold up the run.
      def read(answer, deadline)
        body = String.new
        answer.read_body do |part|
          raise Timeout::Error if Sys.now > deadline

          body << part
        end
        answer.body = body
      end

      def message(request)
        Net::HTTPGenericRequest.new(request.verb, !request.body.nil?, request.verb != "HEAD", request.target.b,
                                    merge(@headers, request.headers))
      end

      # Net::HTTP takes the end of the connection for the end of the body.
      def cut_short?(request, reply)
        request.verb != "HEAD" && reply.class.body_permitted? && reply.content_length.to_i > reply.body.to_s.bytesize
      end

      def failed(request, trouble) = Answer.new(request: request, trouble: trouble)

      def merge(fields, more) = fields.merge(more).transform_keys(&:downcase)
    end
  end
end
