# frozen_string_literal: true

require "json"

module Pando
  module Doctor
    # Asks a worker that has served nothing yet to measure the state that first requests build (see LazyState), and
    # chooses the requests for it. Owned by an examination, in the command's process.
    #
    # @api private
    class LazyStateMeasurement
      # Seconds for the whole measurement: a list of requests that takes longer is cut.
      SECONDS = 15.0
      # Seconds that each of its children may take, and how many times as long as its requests took before: enough on a
      # busy machine, and a child that hangs is given up.
      CHILD_SECONDS = (30.0..120.0)
      CHILD_TIMES = 10
      CHILDREN = 3 # of LazyState::ForkedRun
      # Bytes of its requests: half of a question's, because JSON makes them longer.
      REQUEST_BYTES = 30_000
      # How often the requests are sent: a short list, a long list (see LazyState::Group).
      TIMES = [6, 4].freeze
      FEWEST = 5 # requests

      # @param evidence [Evidence] @param requests [Array<Request>] those of a round
      # @param stuck [Array<Request>] those that got no answer
      # @param patience [Float] seconds for one answer
      # @param parallel [Boolean] false if a request uses an inherited descriptor: then one process could take the bytes
      #   that another one waits for
      def initialize(evidence, requests, stuck, patience, parallel:)
        @evidence = evidence
        @requests = requests
        @stuck = stuck
        @patience = patience
        @parallel = parallel
      end

      # @param stage [Stage] @param worker [Stage::Actor, nil]
      def run(stage, worker)
        requests = first_requests
        return @evidence.could_not("lazy state", "no request was answered without an error") if requests.empty?
        return @evidence.could_not("lazy state", "no worker is ready for it") unless worker

        settings = { times: times, seconds: child_seconds, parallel: @parallel, requests: requests }
        within = (child_seconds * (@parallel ? 1 : CHILDREN)) + @patience
        report = stage.talk_to(worker, within).ask("lazy #{JSON.generate(settings)}") { |fact| fact[:lazy] }
        return @evidence.could_not("lazy state", "no answer within #{within.round} s") unless report

        @evidence.could_not("lazy state", report[:error]) if report[:error]
        @evidence.lazy << report
      end

      private

      # One request for each path, spread over the whole list, as many as time and space allow.
      # @return [Array<String>] as sent
      def first_requests
        different = answered.uniq { |request| [request.verb, request.path] }
        texts = different.map { |request| request.to_http.force_encoding(Encoding::UTF_8) }.select(&:valid_encoding?)
        chosen = spread(texts, most(texts.size))
        room = REQUEST_BYTES
        fitting = chosen.take_while { |text| (room -= text.bytesize).positive? }
        @evidence.limited("lazy state", fitting.size, @requests.size) if fitting.size < different.size
        fitting
      end

      # Those that the other worker answered without an error: one that raises would end the check.
      def answered
        good = @evidence.sent.select { |sent| sent.answer.status&.<(500) }.map(&:request)
        @requests.select { |request| good.include?(request) } - @stuck
      end

      def spread(texts, number)
        return texts if number >= texts.size

        Array.new(number) { |place| texts[place * texts.size / number] }
      end

      def most(size)
        return size unless long?

        [(size * SECONDS / (once * TIMES.last)).floor, FEWEST].max
      end

      def child_seconds = (once * TIMES.first * CHILD_TIMES).clamp(CHILD_SECONDS.min, CHILD_SECONDS.max)
      def times = long? ? TIMES.last : TIMES.first
      def long? = once * TIMES.first > SECONDS

      # Seconds that one worker needs for all requests.
      def once = @evidence.round_seconds || 0.0
    end
  end
end
