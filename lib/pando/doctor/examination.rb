# frozen_string_literal: true

require "json"
require "pando/doctor/census"
require "pando/doctor/checks"
require "pando/doctor/checks/sharing"
require "pando/doctor/evidence"
require "pando/doctor/network"
require "pando/doctor/request_list"
require "pando/doctor/stage"

module Pando
  module Doctor
    # Boots the application as the server would, lets each worker serve, reforks, and collects
    # what was seen. Runs in the process of the command, which never loads the application.
    class Examination
      # Rounds that are compared to see whether descriptors become more; the first one warms up.
      ROUNDS = 3
      # Requests that never end, before no more are sent.
      STUCK_AT_MOST = 3
      # Of one round that is sent again to look for growth.
      REPEATED = 50
      # Seconds for a look at the lazily loaded state.
      LAZY_STATE_WITHIN = 100.0
      # Bytes of requests that it is made with: half of a question, for JSON makes them longer.
      LAZY_STATE_REQUESTS = 30_000

      # @return [Array<Request>] what was sent
      attr_reader :requests

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
          stage.stop
        end
        look_for_origins if anything_native?
        @evidence
      end

      private

      def refork(number)
        return true if @stage.refork

        @evidence.missing = number
        false
      end

      def routes
        paths = @stage.told(:snapshot).filter_map { |fact| fact[:routes] }.first || []
        paths.empty? ? [Request.root] : RequestList.of_paths(paths).requests
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
        moves = serve(number, mold)
        workers = @stage.workers(number)
        workers.each_with_index { |worker, place| ask(worker, place.zero? ? "everything" : "snapshot") }
        censuses = [mold, *workers].to_h { |actor| [actor, Census.of(actor.pid)] }.compact
        generation = Evidence::Generation.new(number: number, mold: mold, workers: workers, network: network,
                                              censuses: censuses, moves: moves)
        generation.shared = Checks::Sharing.new(@evidence, generation).all
        @evidence.generations << generation
        remember_memory("generation #{number}, served", [mold, *workers])
      end

      def ask(worker, question) = @stage.talk_to(worker).ask(question) { |fact| fact[:snapshot] == "served" }

      # @return [Array<Array<Integer>>] of each worker, the mold's descriptors that it has moved
      def serve(number, mold)
        before = positions(mold)
        moves = Array.new(Stage::WORKERS) do |slot|
          look_at_lazy_state(slot) if number.zero? && slot == 1
          round(number, slot)
          after = positions(mold)
          moved = after.reject { |descriptor, position| before[descriptor] == position }.keys
          before = after
          moved
        end
        look_for_growth if number.zero?
        moves
      end

      def positions(mold) = Census.of(mold.pid)&.descriptors.to_h.transform_values(&:position)

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

      # Its worker was killed: the next one must be there before anything else is done.
      def give_up(request, number, slot, from)
        @stuck << request
        @stage.await(@patience * 2, from) do |fact|
          fact[:event] == "worker.ready" && fact[:generation] == number && fact[:slot] == slot
        end
      rescue Journal::Silence
        nil
      end

      def worker_in(number, slot) = @stage.workers(number).find { |worker| worker.slot == slot }

      # What the first requests of a process build and keep: in a worker that has served nothing yet, once it is
      # known that another one answers them.
      def look_at_lazy_state(slot)
        worker = worker_in(0, slot)
        requests = first_requests
        return unless worker && requests.any?

        question = "lazy #{JSON.generate(requests)}"
        told = @stage.talk_to(worker, LAZY_STATE_WITHIN).ask(question) { |fact| fact.key?(:lazy) }
        @evidence.lazy << told if told
      end

      # Of each path one, as many as fit into a question.
      # @return [Array<String>] as sent
      def first_requests
        room = LAZY_STATE_REQUESTS
        different = (@requests - @stuck).uniq { |request| [request.verb, request.path] }
        texts = different.map { |request| request.to_http.force_encoding(Encoding::UTF_8) }.select(&:valid_encoding?)
        texts.take_while { |text| (room -= text.bytesize).positive? }
      end

      def look_for_growth
        worker = worker_in(0, 0)
        return unless worker && @stuck.empty?

        ROUNDS.times do
          round(0, 0, @requests.first(REPEATED))
          @evidence.counts << @stage.talk_to(worker).ask("count") { |fact| fact.key?(:count) }
        end
        @evidence.counts.compact!
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
          @requests.each { |request| stage.talk_to(worker).request(request) unless @stuck.include?(request) } if worker
          stage.stop
          @evidence.origins = stage.told(:origin)
        end
      rescue NotExamined
        nil # it went well the first time: the lines are not worth more
      end
    end
  end
end
