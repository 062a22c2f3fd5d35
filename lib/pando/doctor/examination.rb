# frozen_string_literal: true

require "json"
require "pando/doctor/checks"
require "pando/doctor/evidence"
require "pando/doctor/requests"
require "pando/doctor/shared_descriptors"
require "pando/doctor/stage"

module Pando
  module Doctor
    # Boots the application as the server would, lets each worker serve, reforks, and collects the evidence. Runs in the
    # command's process, which never loads the application. Only one worker at a time gets requests, so that any change
    # in the meantime can be attributed to it.
    class Examination
      USE = "use of inherited descriptors" # a check
      # After so many requests without an answer no more are sent.
      STUCK_AT_MOST = 3
      # Requests of the second, traced run, which is slow.
      TRACED = 20
      # Rounds in which descriptors are counted, the first of which warms up, and requests of such a round.
      GROWTH_ROUNDS = 3
      GROWTH_REQUESTS = 20
      # Seconds without any request, to see which connections are used in the background.
      QUIET = 1.1

      attr_reader :requests

      # @param config [Config] @param requests [Array<Request>, RequestList, :routes, nil] nil: GET /
      # @param reforks [Integer]
      # @param patience [Float] seconds for any one answer @param headers [Hash{String => String}] of each request
      def initialize(config, requests:, reforks:, patience:, headers: {})
        @config = config
        @wanted = requests
        @headers = headers
        @reforks = reforks
        @patience = patience
        @evidence = Evidence.new(config.directory)
        @stuck = [] # requests that got no answer; they are not sent again
      end

      # @return [Evidence]
      def run
        Stage.open(@config, patience: @patience) do |stage|
          @stage = stage
          @evidence.facts = stage.facts
          @requests = wanted.map { |request| request.with_headers(@headers) }
          examine_generations
          @evidence.could_not("libraries", "no mold reported them") if stage.reports(:section).empty?
          stage.stop
        end
        judge_responses
        trace_native_origins if unlocated_native_fault?
        @evidence
      end

      private

      # Middleware that redirects or refuses all requests is not the application. That / exists nobody has promised.
      def judge_responses
        responses = @evidence.responses
        return @evidence.no_root if @wanted.nil? && responses.not_found?

        outcome = ": #{responses}" if @evidence.sent.any?
        return @evidence.could_not("requests", "none was answered with 2xx#{outcome}") unless responses.served?

        @evidence.could_not("requests", "most of the application is broken here#{outcome}") if responses.broken?
      end

      def wanted
        return [Request.root] if @wanted.nil?
        return routes if @wanted == :routes
        return @wanted unless @wanted.is_a?(RequestList)

        @evidence.unread(@wanted)
        @wanted.requests
      end

      def routes
        paths = @stage.reports(:snapshot).filter_map { |fact| fact[:routes] }.first || []
        raise NotExamined, "--requests routes: no Rails route can be asked without parameters" if paths.empty?

        RequestList.new(paths).requests
      end

      def examine_generations
        0.upto(@reforks) do |number|
          return @evidence.missing = number unless number.zero? || @stage.refork

          examine_generation(number)
        end
      end

      def examine_generation(number)
        mold = @stage.mold(number)
        remember_memory("generation #{number}, forked", [mold, *@stage.workers(number)])
        sockets = SocketTable.new(mold.pid)
        uses = serve(number)
        workers = @stage.workers(number)
        workers.each_with_index do |worker, place|
          question = place.zero? ? "everything" : "snapshot"
          ask(worker, question, "threads, locks and constants") { |fact| fact[:snapshot] == "served" }
        end
        generation = Evidence::Generation.new(number: number, mold: mold, workers: workers, sockets: sockets,
                                              processes: process_infos([mold, *workers]), uses: uses)
        generation.shared = SharedDescriptors.new(@evidence, generation).all
        @evidence.generations << generation
        remember_memory("generation #{number}, served", [mold, *workers])
      end

      def process_infos(actors)
        found = actors.to_h { |actor| [actor, ProcessInfo.of(actor.pid)] }
        found.each { |actor, info| @evidence.could_not("shared descriptors", "#{actor.title} is gone") unless info }
        found.compact
      end

      # @param check [String] the check that needs the answer
      def ask(worker, question, check, &)
        @stage.talk_to(worker).ask(question, &).tap do |answer|
          @evidence.could_not(check, "#{worker.title} did not answer within #{@patience.round} s") unless answer
        end
      end

      # @return [Hash{Integer => Array<Hash>}] by slot, the inherited descriptors that the worker used
      def serve(number)
        uses = {}
        Stage::WORKERS.times do |slot|
          examine_first_generation(parallel: uses[0].empty?) if number.zero? && slot == 1
          began = Sys.now
          uses[slot] = turn(number, slot) { serve_round(number, slot) }
          @evidence.round_seconds ||= Sys.now - began
        end
        without_background(number, uses)
      end

      # The very first responses tell which requests the application wants to have over TLS.
      def serve_round(number, slot)
        round(number, slot)
        round(number, slot, take_to_tls) if number.zero? && slot.zero?
      end

      # From now on, requests that were redirected to TLS are sent as a TLS proxy sends them.
      # @return [Array<Request>] these
      def take_to_tls
        redirected, @evidence.sent = @evidence.sent.partition(&:sent_to_tls?)
        renewed = redirected.map(&:request).to_h { |request| [request, request.over_tls] }
        @requests = @requests.map { |request| renewed.fetch(request, request) }
        @evidence.over_tls = renewed.size
        renewed.values
      end

      # Sends each request once to the worker of a slot.
      def round(number, slot, requests = @requests)
        requests.each do |request|
          next if @stuck.include?(request) || @stuck.size >= STUCK_AT_MOST
          next unless (worker = worker_in(number, slot))

          from = @stage.mark
          answer = @stage.talk_to(worker).request(request)
          @evidence.sent << Evidence::Sent.new(request: request, generation: number, slot: slot, answer: answer)
          give_up(request, number, slot, from) if answer.stuck?
        end
      end

      def worker_in(number, slot) = @stage.workers(number).find { |worker| worker.slot == slot }

      # Makes two checks that need no refork, in parallel unless they would use one inherited descriptor: the worker in
      # slot 1, which has served nothing yet, measures lazy state, and the worker in slot 0 serves more rounds.
      def examine_first_generation(parallel:)
        measurement = LazyStateMeasurement.new(@evidence, @requests, @stuck, @patience,
                                               parallel: parallel, threads: Config::Threads.most(@config) > 1)
        lazy_state = Thread.new { measurement.run(@stage, worker_in(0, 1)) }
        lazy_state.join unless parallel
        measure_growth
        lazy_state.join
      end

      # Counts the descriptors of a worker after each round.
      def measure_growth
        worker = worker_in(0, 0) or return
        return @evidence.could_not("growth", "requests got no response") if @stuck.any?

        GROWTH_ROUNDS.times do
          round(0, 0, @requests.first(GROWTH_REQUESTS))
          @evidence.counts << @stage.talk_to(worker).ask("count") { |fact| fact.key?(:count) }
        end
        @evidence.could_not("growth", "#{worker.title} did not answer") if @evidence.counts.include?(nil)
        @evidence.counts.compact!
      end

      # A worker that was killed for a request without an answer has a successor, which answers the last question.
      def turn(number, slot)
        worker = worker_in(number, slot) or return []
        ask(worker, "turn", USE) { |fact| fact.key?(:turn) }
        yield
        worker = worker_in(number, slot) or return []
        ask(worker, "use", USE) { |fact| fact.key?(:use) }&.fetch(:use) || []
      end

      # A thread, perhaps of the mold, may use a connection at any time. The kernel's figures for such a connection
      # change without a request too, so they say nothing about the worker.
      def without_background(number, uses)
        return uses if uses.values.flatten.all? { |one| one[:site] }

        slot = uses.keys.find { |key| worker_in(number, key) } or return uses
        background = turn(number, slot) { IO.select(nil, nil, nil, QUIET) }.map { |one| one[:number] }
        uses.transform_values { |used| used.select { |one| one[:site] || !background.include?(one[:number]) } }
      end

      # Its worker was killed: the next one must be ready before the examination goes on.
      def give_up(request, number, slot, from)
        @stuck << request
        @stage.await(@patience * 2, from) do |fact|
          fact[:event] == "worker.ready" && fact[:generation] == number && fact[:slot] == slot
        end
      rescue Stage::Silence
        nil
      end

      def remember_memory(moment, actors)
        actors.compact.each do |actor|
          figures = ProcessInfo.new(actor.pid).memory
          next if figures.empty?

          @evidence.memory << Evidence::Memory.new(moment: moment, title: actor.title, pid: actor.pid, **figures)
        end
      end

      # Whether native threads or descriptors of C code were found whose line is not known.
      def unlocated_native_fault?
        found = Checks::Descriptors.new(@evidence).findings + Checks::Inheritance.new(@evidence).native_threads
        found.any? { |one| one.location.nil? && one.severity != :note }
      end

      # Runs the application a second time, with a trace of each call into C.
      def trace_native_origins
        Stage.open(@config, patience: @patience, workers: 1, trace: true) do |stage|
          worker = stage.workers(0).first
          wanted = (@requests - @stuck).first(TRACED)
          wanted.each { |request| stage.talk_to(worker).request(request) } if worker
          stage.stop
          @evidence.origins = stage.reports(:origin)
        end
      rescue NotExamined
        nil # the findings stand without their lines
      end
    end

    # Asks a worker that has served nothing yet to measure the state that first requests build (see LazyState), and
    # chooses the requests for it. Owned by an examination, in the command's process.
    class LazyStateMeasurement
      # Seconds for the whole measurement: a list of requests that takes longer is cut.
      SECONDS = 15.0
      # Seconds that each of its children may take, and how many times as long as its requests took before: enough on a
      # busy machine, and a child that hangs is given up.
      CHILD_SECONDS = (30.0..120.0)
      CHILD_TIMES = 10
      CHILDREN = 3 # of LazyState::ForkedRun
      # How often the requests are sent: a short list, a long list (see LazyState::Group).
      TIMES = [6, 4].freeze
      FEWEST = 5 # requests

      # @param stuck [Array<Request>] those that got no answer
      # @param parallel [Boolean] false if a request uses an inherited descriptor: then one process could take the bytes
      #   that another one waits for
      # @param threads [Boolean] whether one more child looks for shared state afterwards
      def initialize(evidence, requests, stuck, patience, parallel:, threads: false)
        @evidence = evidence
        @requests = requests
        @stuck = stuck
        @patience = patience
        @parallel = parallel
        @threads = threads
      end

      def run(stage, worker)
        requests = first_requests
        return @evidence.could_not("lazy state", "no request was answered without an error") if requests.empty?
        return @evidence.could_not("lazy state", "no worker is ready for it") unless worker

        report = stage.talk_to(worker, within).ask("lazy #{write(stage.folder, requests)}") { |fact| fact[:lazy] }
        return @evidence.could_not("lazy state", "no answer within #{within.round} s") unless report

        @evidence.could_not("lazy state", report[:error]) if report[:error]
        @evidence.lazy_state = report
      end

      # @return [Float] seconds that its worker may take for the answer (at most Subject::Payload::MEASUREMENT and the
      #   patience)
      def within = (child_seconds * in_succession) + @patience

      private

      # A question is a datagram, for which the requests may be too large.
      # @return [String] path
      def write(folder, requests)
        path = File.join(folder, "lazy.json")
        File.write(path, JSON.generate(times: times, seconds: child_seconds, parallel: @parallel,
                                       requests: requests.map { |one| [one.to_http].pack("m0") }))
        path
      end

      # One request for each path, spread over the whole list, as many as time allows.
      def first_requests
        different = answered.uniq { |request| [request.verb, request.path] }
        chosen = spread(different, most(different.size))
        @evidence.limited("lazy state", chosen.size, @requests.size) if chosen.size < different.size
        chosen
      end

      # Those that the other worker answered without an error: one that raises would end the check.
      def answered
        good = @evidence.sent.select { |sent| sent.answer.status&.<(500) }.map(&:request)
        @requests.select { |request| good.include?(request) } - @stuck
      end

      def spread(requests, number)
        return requests if number >= requests.size

        Array.new(number) { |place| requests[place * requests.size / number] }
      end

      def most(size)
        return size unless long?

        [(size * SECONDS / (once * TIMES.last)).floor, FEWEST].max
      end

      # How many children run one after another.
      def in_succession = (@parallel ? 1 : CHILDREN) + (@threads ? 1 : 0)
      def child_seconds = (once * TIMES.first * CHILD_TIMES).clamp(CHILD_SECONDS.min, CHILD_SECONDS.max)
      def times = long? ? TIMES.last : TIMES.first
      def long? = once * TIMES.first > SECONDS

      # Seconds that one worker needs for all requests.
      def once = @evidence.round_seconds || 0.0
    end
  end
end
