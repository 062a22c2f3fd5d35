# frozen_string_literal: true

require "json"
require "pando/doctor/journal"

module Pando
  module Doctor
    # Two checks that need no refork, made while no worker has its turn: the worker of slot 0 serves on so that growth
    # shows, and that of slot 1, which has served nothing yet, is asked for the state that its first requests build. To
    # save time they are made at the same time. Belongs to an examination, in the process of the command.
    #
    # @api private
    class FirstGeneration
      # Rounds that are compared to see whether descriptors become more; the first one warms up.
      ROUNDS = 3
      # Requests of such a round.
      REPEATED = 20
      # Seconds in which the lazily built state is to be found. Longer lists of requests are cut.
      LAZY_STATE_SECONDS = 15.0
      # Seconds for each of its three children, and times as long as the requests should take: a child that waits for
      # ever is given up, one on a busy machine is not.
      CHILD_SECONDS = (30.0..120.0)
      CHILD_TIMES = 10
      # Bytes of requests that it is made with: half of a question, for JSON makes them longer.
      LAZY_STATE_BYTES = 30_000
      # How often the requests are sent, of a short list and of a long one: see LazyState::Group.
      TIMES = [6, 4].freeze
      FEWEST = 5
      CHILDREN = 3 # of LazyState::Examination

      # @param examination [Examination] @param patience [Float] seconds for any one answer
      def initialize(examination, patience)
        @examination = examination
        @evidence = examination.evidence
        @patience = patience
      end

      # @param parallel [Boolean] false where a request uses an inherited descriptor: at the same time, one process
      #   would take what is meant for another and leave it waiting
      # @return [nil]
      def look(parallel:)
        @parallel = parallel
        lazy_state = Thread.new { look_at_lazy_state }
        lazy_state.join unless parallel
        look_for_growth
        lazy_state.join
        nil
      end

      private

      def worker(slot) = @examination.worker_in(0, slot)

      def look_for_growth
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

      def look_at_lazy_state
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

      # Of each path one, spread over the whole list, as many as there is time and room for.
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

      # By the other worker, without an error: one request that raises would end the look.
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

      # Seconds for all requests once.
      def once = @evidence.round_seconds || 0.0
    end
  end
end
