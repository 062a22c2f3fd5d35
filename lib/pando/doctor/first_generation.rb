# frozen_string_literal: true

require "json"

module Pando
  module Doctor
    # Makes two checks that need no refork, at the same time: the worker in slot 0 serves more rounds, to see whether
    # its descriptors grow, and the worker in slot 1, which has served nothing yet, measures the state that first
    # requests build. Owned by an examination, in the command's process.
    #
    # @api private
    class FirstGeneration
      # Rounds of requests; the first one warms up.
      ROUNDS = 3
      # Requests of such a round.
      REPEATED = 20
      # Seconds for the check of lazy state: a list of requests that takes longer is cut.
      LAZY_STATE_SECONDS = 15.0
      # Seconds that each of its three children may take, and how many times as long as its requests took before: enough
      # on a busy machine, and a child that hangs is given up.
      CHILD_SECONDS = (30.0..120.0)
      CHILD_TIMES = 10
      # Bytes of its requests: half of a question's, because JSON makes them longer.
      LAZY_STATE_BYTES = 30_000
      # How often the requests are sent: a short list, a long list (see LazyState::Group).
      TIMES = [6, 4].freeze
      FEWEST = 5
      CHILDREN = 3 # of LazyState::ForkedRun

      # @param examination [Examination] @param patience [Float] seconds for any one answer
      def initialize(examination, patience)
        @examination = examination
        @evidence = examination.evidence
        @patience = patience
      end

      # @param parallel [Boolean] false if a request uses an inherited descriptor: then one process could take the bytes
      #   that another one waits for
      # @return [nil]
      def examine(parallel:)
        @parallel = parallel
        lazy_state = Thread.new { measure_lazy_state }
        lazy_state.join unless parallel
        measure_growth
        lazy_state.join
        nil
      end

      private

      def worker(slot) = @examination.worker_in(0, slot)

      def measure_growth
        worker = worker(0)
        return unless worker
        return @evidence.could_not("growth", "requests got no answer") if @examination.stuck.any?

        ROUNDS.times do
          @examination.round(0, 0, @examination.requests.first(REPEATED))
          @evidence.counts << @examination.stage.talk_to(worker).ask("count") { |fact| fact.key?(:count) }
        end
        @evidence.could_not("growth", "#{worker.title} did not answer") if @evidence.counts.include?(nil)
        @evidence.counts.compact!
      end

      def measure_lazy_state
        worker = worker(1)
        requests = first_requests
        return @evidence.could_not("lazy state", "no request was answered without an error") if requests.empty?
        return @evidence.could_not("lazy state", "there is no worker for it") unless worker

        settings = { times: times, seconds: child_seconds, parallel: @parallel, requests: requests }
        within = (child_seconds * (@parallel ? 1 : CHILDREN)) + @patience
        told = @examination.stage.talk_to(worker, within).ask("lazy #{JSON.generate(settings)}") { |fact| fact[:lazy] }
        return @evidence.could_not("lazy state", "no answer within #{within.round} s") unless told

        @evidence.could_not("lazy state", told[:error]) if told[:error]
        @evidence.lazy << told
      end

      # One request for each path, spread over the whole list, as many as time and space allow.
      # @return [Array<String>] as sent
      def first_requests
        different = answered.uniq { |request| [request.verb, request.path] }
        texts = different.map { |request| request.to_http.force_encoding(Encoding::UTF_8) }.select(&:valid_encoding?)
        chosen = spread(texts, most(texts.size))
        room = LAZY_STATE_BYTES
        fitting = chosen.take_while { |text| (room -= text.bytesize).positive? }
        @evidence.limited("lazy state", fitting.size, @examination.requests.size) if fitting.size < different.size
        fitting
      end

      # Those that the other worker answered without an error: one that raises would end the check.
      def answered
        good = @evidence.sent.select { |sent| sent.answer.status&.<(500) }.map(&:request)
        @examination.requests.select { |request| good.include?(request) } - @examination.stuck
      end

      def spread(texts, number)
        return texts if number >= texts.size

        Array.new(number) { |place| texts[place * texts.size / number] }
      end

      def most(size)
        return size unless long?

        [(size * LAZY_STATE_SECONDS / (once * TIMES.last)).floor, FEWEST].max
      end

      def child_seconds = (once * TIMES.first * CHILD_TIMES).clamp(CHILD_SECONDS.min, CHILD_SECONDS.max)
      def times = long? ? TIMES.last : TIMES.first
      def long? = once * TIMES.first > LAZY_STATE_SECONDS

      # Seconds that one worker needs for all requests.
      def once = @evidence.round_seconds || 0.0
    end
  end
end
