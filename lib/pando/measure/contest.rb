# frozen_string_literal: true

require "net/http"
require "pando/doctor/requests"
require "pando/doctor/responses"
require "pando/measure/figures"
require "pando/measure/subject"
require "pando/sys"
require "pando/sys/memory"
require "pando/wording"

module Pando
  module Measure
    # Several clients, each on its own thread. Each keeps a connection for some requests, and sends its next request as
    # soon as it has the answer. The order of the requests is fixed, so every server gets the same.
    class Client
      # The outcome of a request: the seconds until the last byte (nil: no complete answer came), and what was wrong, if
      # anything was.
      Answer = Struct.new(:request, :seconds, :status, :location, :trouble, keyword_init: true) do
        def redirected? = Doctor::Responses::REDIRECTED.include?(status)
        def server_error? = (500..599).cover?(status)
      end

      # Requests on one connection. With more, a server whose workers own connections could leave a worker without any.
      KEPT_FOR = 20
      REPLY_WITHIN = 60 # seconds
      ADDRESS = "127.0.0.1"
      CLOSED = "the server closed the connection before the response was complete"
      REFUSED = "the server refused the connection"

      def initialize(port, headers:, clients:)
        @port = port
        @headers = { "Host" => "#{ADDRESS}:#{port}", "User-Agent" => "pando measure", "Accept" => "*/*",
                     "Accept-Encoding" => "identity" }.then { |fields| Doctor::Request.merge(fields, headers) }
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
        failed(request, "no response within #{REPLY_WITHIN} s")
      rescue Net::ProtocolError, Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError => e
        failed(request, "malformed response: #{e.message}")
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
                                    request.fields(@headers))
      end

      # Net::HTTP takes the end of the connection for the end of the body.
      def cut_short?(request, reply)
        request.verb != "HEAD" && reply.class.body_permitted? && reply.content_length.to_i > reply.body.to_s.bytesize
      end

      def failed(request, trouble) = Answer.new(request: request, trouble: trouble)
    end

    # The first pass: sends each of the different requests once to each server. A request that one server fails is left
    # out for both.
    class Rehearsal
      include Wording

      # The headers of each request, the remaining requests (a Selection), and how many were answered with a
      # redirection.
      attr_reader :headers, :selection, :redirected
      # @return [String, nil] how the application is broken; nil: it is not
      attr_reader :broken

      def initialize(subjects, selection, headers)
        @subjects = subjects
        @selection = selection
        @headers = headers
      end

      # @raise [NotMeasured] no request is left
      def call
        answers = ask_all
        if answers.each_value.any? { |given| given.any? { |answer| sent_to_tls?(answer) } }
          @tls = true
          @headers = Doctor::Request.merge(Doctor::Request::TLS, headers)
          answers = ask_all
        end
        @redirected = answers.values.first.count(&:redirected?)
        @selection = selection.without(reasons(answers))
        raise nothing_left(answers) if selection.requests.empty?

        @broken = breakage(answers)
        self
      end

      # Whether requests have the header of a TLS proxy.
      def tls? = @tls == true

      private

      def ask_all
        @subjects.to_h do |subject|
          [subject, Client.new(subject.port, headers: headers, clients: 1).run(selection.different)]
        end
      end

      # An application is broken if half or more of its requests are answered with 5xx: the figures of the rest mean
      # nothing.
      def breakage(answers)
        tried = answers.values.first.size
        failed = answers.transform_values { |given| given.select(&:server_error?).map(&:request) }
        number = failed.values.flatten.uniq.size
        return if number.zero? || number * 2 < tried

        sides = failed.map { |subject, requests| "#{subject.name} #{requests.size}" }.join(", ")
        "#{number} of #{counted(tried, "different request")} failed with 5xx in the first pass (#{sides}): the " \
          "application is broken here, and the figures cover only the remaining requests. #{advice(failed)}"
      end

      def advice(failed)
        known = failed.filter_map { |subject, requests| subject.advice if requests.any? }.uniq
        known.empty? ? "See its output or its log for the reason." : known.join(" ")
      end

      def sent_to_tls?(answer)
        answer.redirected? && answer.request.with_headers(headers).sent_to_tls?(answer.location)
      end

      def reasons(answers)
        troubles = answers.flat_map do |subject, given|
          given.select(&:trouble).map { |answer| [answer.request, subject.name, answer] }
        end
        troubles.group_by(&:first).transform_values { |told| reason(told.to_h { |_, name, answer| [name, answer] }) }
      end

      # @param failed [Hash{String => Client::Answer}] by the name of the server
      def reason(failed)
        words = failed.each_value.map { |answer| answer.status ? "answered with #{answer.trouble}" : answer.trouble }
        return words.first if words.uniq.one? && words.size == @subjects.size

        failed.keys.zip(words).map { |name, said| "#{name}#{":" unless failed[name].status} #{said}" }.join(", ")
      end

      def nothing_left(answers)
        told = selection.left_out.map { |reason, names| "#{names.first(3).join(", ")}: #{reason}" }
        failed = failed(answers)
        advice = Advice.on_statuses(answers.values_at(*failed).flatten.map(&:status).compact)
        server = @subjects.one? ? "it answers" : "both answer"
        summary = "no request is left that #{server} without an error: #{told.join("; ")}"
        NotMeasured.because_of(failed, [summary, *advice].join("\n"))
      end

      # @return [Array<Subject>] those that failed the requests
      def failed(answers)
        troubled = answers.select { |_, given| given.any?(&:trouble) }.keys
        hopeless = troubled.select { |subject| answers.fetch(subject).all?(&:trouble) }
        hopeless.empty? ? troubled : hopeless
      end
    end

    # The load. Both servers run all the time and get the same requests in slices, in turn, so that other work on the
    # machine affects both alike. After each slice, reads the memory and the CPU time of the server that answered it.
    class Contest
      # Readings, in addition to the one before the load.
      SLICES = 40
      # Requests in a slice, at least: a percentile of fewer means nothing.
      SHORTEST = 20
      NO_MEMORY = "the kernel does not tell the memory of other processes: /proc/PID/smaps_rollup cannot be read"
      # Bytes of memory that must be left for other processes.
      SPARE = 200 * 1_048_576
      OWNERS = { group: "the container's", machine: "the machine's" }.freeze

      # @return [Array<Side>] the other server first, Pando last
      attr_reader :sides
      # @return [String, nil] why it ended early
      attr_reader :cut_short

      # @param tell [#call] gets what is being done, and the number of requests done and the total, of each server
      def initialize(subjects, rehearsal, plan, tell)
        @plan = plan
        @selection = rehearsal.selection
        @tell = tell
        @sides = subjects.map { |subject| Side.new(subject, plan.workers, [], []) }
        @clients = subjects.to_h do |subject|
          [subject, Client.new(subject.port, headers: rehearsal.headers, clients: plan.clients)]
        end
      end

      # @raise [NotMeasured]
      def call
        sides.each { |side| look_first(side) }
        done = 0
        while done < @plan.total && !cut_short
          count = [slice, @plan.total - done].min
          order(done).each { |side| load(side, done, count) }
          @tell.call("loading", done += count, @plan.total)
          check_memory
        end
        sides.each(&:facts) # while the servers run
        self
      end

      private

      def slice = @slice ||= [@plan.total.fdiv(SLICES).ceil, SHORTEST].max

      # The second server of a turn has had a pause, so the order alternates.
      def order(done) = (done / slice).even? ? sides : sides.reverse

      def load(side, first, count)
        answers = @clients.fetch(side.subject).run(@selection.slice(first, count))
        side.slices << answers
        raise side.subject.failure("the server ended under load") unless side.subject.alive?

        look(side, first + count)
      end

      # Without the workers' memory, each reading would be 0, or the memory of the master only.
      def look_first(side)
        look(side, 0)
        return unless side.readings.first.last.workers.zero?

        raise side.subject.failure("the server ended before the load") unless side.subject.alive?

        raise NotMeasured, NO_MEMORY
      end

      def look(side, done)
        side.readings << [done.fdiv(@plan.workers), side.subject.tree.read]
      end

      def check_memory
        left = Sys::Memory.left
        return unless left && left.bytes < SPARE

        @cut_short = "only #{left.bytes / 1_048_576} MiB of #{OWNERS.fetch(left.place)} memory were left"
      end
    end
  end
end
