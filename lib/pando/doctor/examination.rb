# frozen_string_literal: true

require "json"
require "pando/doctor/census"
require "pando/doctor/checks"
require "pando/doctor/checks/sharing"
require "pando/doctor/evidence"
require "pando/doctor/first_generation"
require "pando/doctor/network"
require "pando/doctor/request_list"
require "pando/doctor/stage"

module Pando
  module Doctor
    # Boots the application as the server would, lets each worker serve, reforks, and collects what was seen. Runs in
    # the process of the command, which never loads the application. Only one worker is sent requests at a time, so
    # that what changes in the meantime can be put down to it.
    class Examination
      # Requests without an answer, before no more are sent.
      STUCK_AT_MOST = 3
      # Requests for the second look at native threads and descriptors, which is slow.
      TRACED = 20
      # Seconds without any request, to see which connections are used all the same.
      QUIET = 1.1

      # @return [Array<Request>] what was sent
      attr_reader :requests
      # @return [Evidence] collected so far
      attr_reader :evidence
      # @return [Stage]
      attr_reader :stage
      # @return [Array<Request>] those without an answer: they are not sent again
      attr_reader :stuck

      # @param config [Config] @param requests [Array<Request>, :routes] @param reforks [Integer]
      # @param patience [Float] seconds for any one answer
      def initialize(config, requests:, reforks:, patience:)
        @config = config
        @wanted = requests
        @reforks = reforks
        @patience = patience
        @evidence = Evidence.new(config.directory)
        @stuck = []
      end

      # @return [Evidence]
      # @raise [NotExamined]
      def run
        Stage.open(@config, patience: @patience) do |stage|
          @stage = stage
          @evidence.facts = stage.facts
          @requests = @wanted == :routes ? routes : @wanted
          0.upto(@reforks) { |number| break unless examine(number) }
          @evidence.could_not("libraries", "no mold told of them") if stage.told(:section).empty?
          stage.stop
        end
        look_for_origins if anything_native?
        @evidence
      end

      # Sends each request once to the worker of a slot.
      # @param number [Integer] the generation
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

      # @return [Stage::Actor, nil]
      def worker_in(number, slot) = @stage.workers(number).find { |worker| worker.slot == slot }

      private

      def refork(number)
        return true if @stage.refork

        @evidence.missing = number
        false
      end

      # @raise [NotExamined]
      def routes
        paths = @stage.told(:snapshot).filter_map { |fact| fact[:routes] }.first || []
        raise NotExamined, "--requests routes: no Rails route can be asked without parameters" if paths.empty?

        RequestList.of_paths(paths).requests
      end

      # @return [Boolean] false: there is no such generation
      def examine(number)
        return false unless number.zero? || refork(number)

        look(number)
        true
      end

      def look(number)
        mold = @stage.mold(number)
        remember_memory("generation #{number}, forked", [mold, *@stage.workers(number)])
        network = Network.new(mold.pid)
        uses = serve(number)
        workers = @stage.workers(number)
        workers.each_with_index { |worker, place| ask_for_snapshot(worker, place.zero? ? "everything" : "snapshot") }
        generation = Evidence::Generation.new(number: number, mold: mold, workers: workers, network: network,
                                              censuses: censuses([mold, *workers]), uses: uses)
        generation.shared = Checks::Sharing.new(@evidence, generation).all
        @evidence.generations << generation
        remember_memory("generation #{number}, served", [mold, *workers])
      end

      def censuses(actors)
        found = actors.to_h { |actor| [actor, Census.of(actor.pid)] }
        found.each { |actor, seen| @evidence.could_not("shared descriptors", "#{actor.title} is gone") unless seen }
        found.compact
      end

      def ask_for_snapshot(worker, question)
        ask(worker, question, "threads, locks and constants") { |fact| fact[:snapshot] == "served" }
      end

      # @param check [String] what cannot be done without an answer
      # @return [Hash, nil]
      def ask(worker, question, check, &)
        @stage.talk_to(worker).ask(question, &).tap do |answer|
          @evidence.could_not(check, "#{worker.title} did not answer within #{@patience.round} s") unless answer
        end
      end

      # @return [Hash{Integer => Array<Hash>}] by slot, what that worker used of what it inherited
      def serve(number)
        uses = {}
        Stage::WORKERS.times do |slot|
          FirstGeneration.new(self, @patience).look(parallel: uses[0].empty?) if number.zero? && slot == 1
          began = Sys.now
          uses[slot] = turn(number, slot) { round(number, slot) }
          @evidence.round_seconds ||= Sys.now - began
        end
        without_background(number, uses)
      end

      # A worker that was killed for a request without an answer has a successor, which tells what Ruby saw.
      def turn(number, slot)
        worker = worker_in(number, slot) or return []
        ask(worker, "turn", USE) { |fact| fact.key?(:turn) }
        yield
        worker = worker_in(number, slot) or return []
        ask(worker, "use", USE) { |fact| fact.key?(:use) }&.fetch(:use) || []
      end

      USE = "use of inherited descriptors"
      private_constant :USE

      # A thread, of the mold perhaps, may use a connection at any time: then figures of the kernel that change during a
      # worker's turn say nothing of the worker.
      def without_background(number, uses)
        return uses if uses.values.flatten.all? { |one| one[:site] }

        slot = uses.keys.find { |key| worker_in(number, key) } or return uses
        restless = turn(number, slot) { IO.select(nil, nil, nil, QUIET) }.map { |one| one[:number] }
        uses.transform_values { |used| used.select { |one| one[:site] || !restless.include?(one[:number]) } }
      end

      # Its worker was killed: the next one must be there before anything else is done.
      def give_up(request, number, slot, from)
        @stuck << request
        @stage.await(@patience * 2, from) do |fact|
          fact[:event] == "worker.ready" && fact[:generation] == number && fact[:slot] == slot
        end
      rescue Journal::Silence
        nil
      end

      def remember_memory(moment, actors)
        actors.compact.each do |actor|
          figures = Census.new(actor.pid).memory
          next if figures.empty?

          @evidence.memory << Evidence::Memory.new(moment: moment, title: actor.title, pid: actor.pid, **figures)
        end
      end

      # Something that no Ruby object stands for was seen, and it matters.
      def anything_native?
        found = [Checks::Descriptors, Checks::Threads].flat_map { |check| check.new(@evidence).findings }
        found.any? { |one| one.location.nil? && one.severity != :note }
      end

      # The application again, with an eye on each call into C.
      def look_for_origins
        Stage.open(@config, patience: @patience, workers: 1, trace: true) do |stage|
          worker = stage.workers(0).first
          wanted = (@requests - @stuck).first(TRACED)
          wanted.each { |request| stage.talk_to(worker).request(request) } if worker
          stage.stop
          @evidence.origins = stage.told(:origin)
        end
      rescue NotExamined
        nil # it went well the first time: the lines are not worth more
      end
    end
  end
end
