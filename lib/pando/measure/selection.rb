# frozen_string_literal: true

require "pando/counted"
require "pando/doctor/requests"
require "pando/errors"

module Pando
  module Measure
    # The requests that both servers get, in their order, as often as they are in it; and what was left out, and why.
    #
    # @api private
    class Selection
      include Counted

      # Of a longer log the beginning is replayed.
      LONGEST = 20_000
      # Different requests: each is tried once with each server before anything is measured.
      DIFFERENT = 500
      WRITES = "of a log only GET and HEAD are replayed, --writes replays the others too, without their bodies"
      LISTED_WRITES = "only GET and HEAD are sent without --writes"
      UNREADABLE = "no request that can be sent"
      RARE = "not among the #{DIFFERENT} that are asked for most".freeze
      LATE = "behind the first #{LONGEST} requests".freeze
      # What a GET should not do, and in many applications does.
      HAZARDOUS = /log_?out|sign_?out|delete|destroy|remove|unsubscribe|\breset/i
      HAZARD = "by its name it may do more than read; --routes FILE asks for what you list"
      TURBO = /_historical_location\z/
      TURBOS = "it belongs to Turbo"
      private_constant :TURBO

      class << self
        # @param lines [Enumerable<String>] of a list or a log, see {Doctor::RequestLine}
        # @param origin [String] what they are, for the report
        # @param writes [Boolean] whether to replay what does more than read
        # @return [Selection]
        def of_lines(lines, origin, writes: false)
          left = Hash.new { |all, reason| all[reason] = [] }
          requests = lines.filter_map do |text|
            line = Doctor::RequestLine.new(text)
            next if line.empty?

            reason = objection(line, writes)
            left[reason] << (line.request || text.strip[0, 40]) if reason
            line.request unless reason
          end
          new(requests, origin, left).bounded
        end

        # @param paths [Array<String>] GET routes
        # @return [Selection]
        def of_routes(paths)
          left = { HAZARD => paths.grep(HAZARDOUS), TURBOS => paths.grep(TURBO) }
          taken = paths - left.values.flatten
          requests = (taken.empty? ? ["/"] : taken).map { |path| Doctor::RequestLine.new(path).request }.compact
          new(requests, "the GET routes of the application that need no parameters", left)
        end

        # @return [Selection]
        def of_root = new([Doctor::Request.root], "/ alone, for nothing else was named", {})

        private

        def objection(line, writes)
          return UNREADABLE unless line.request
          return if writes || line.safe?

          line.logged? ? WRITES : LISTED_WRITES
        end
      end

      # @return [Array<Doctor::Request>]
      attr_reader :requests
      # @return [String] where they are from
      attr_reader :origin
      # @return [Hash{String => Array<Object>}] by reason, requests or what they are called
      attr_reader :left

      def initialize(requests, origin, left)
        @requests = requests
        @origin = origin
        @left = left.reject { |_, named| named.empty? }
      end

      # @return [Array<Doctor::Request>] each once
      def different = requests.uniq

      # @param failed [Hash{Doctor::Request => String}] the reason by request
      # @return [Selection] without them
      def without(failed)
        more = failed.keys.group_by { |request| failed.fetch(request) }
        Selection.new(requests.reject { |request| failed.key?(request) }, origin, left.merge(more))
      end

      # @return [Selection] no longer than it may be
      def bounded
        late = requests.drop(LONGEST)
        taken = requests.first(LONGEST)
        rare = taken.tally.sort_by.with_index { |(_, times), place| [-times, place] }.drop(DIFFERENT).to_h
        kept = rare.empty? ? taken : taken.reject { |request| rare.key?(request) }
        Selection.new(kept, origin, left.merge(RARE => rare.keys, LATE => late))
      end

      # @param first [Integer] @param count [Integer]
      # @return [Array<Doctor::Request>] so many from there on; the first one follows the last one
      def slice(first, count) = Array.new(count) { |step| requests[(first + step) % requests.size] }

      # @return [String] what was taken
      def title
        "#{counted(requests.size, "request")} of #{counted(different.size, "kind")}: #{origin}"
      end

      # @return [Hash{String => Array<String>}] without queries, which may hold secrets
      def left_out
        left.transform_values do |named|
          named.map { |one| name(one) }.tally.map { |name, times| repeated(name, times) }
        end
      end

      private

      def name(one) = one.respond_to?(:verb) ? "#{one.verb} #{one.path}" : one.to_s
      def repeated(name, times) = times > 1 ? "#{name} (#{times} times)" : name
    end
  end
end
