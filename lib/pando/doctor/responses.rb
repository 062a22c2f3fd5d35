# frozen_string_literal: true

require "pando/doctor/requests"
require "pando/wording"

module Pando
  module Doctor
    # What the application answered: a doctor whose requests were all redirected to a login has seen little of the
    # application's own code. A request counts once, with its first response. Owned by the evidence of an examination,
    # in the command's process.
    class Responses
      include Wording

      SERVED = (200..299)
      REDIRECTED = (300..399)

      # @param sent [Array<Evidence::Sent>] @param over_tls [Integer] requests that were sent as by a TLS proxy
      def initialize(sent, over_tls = 0)
        @sent = sent
        @over_tls = over_tls
        @first = sent.uniq(&:request).map { |one| one.answer.status }
      end

      # @return [Boolean] whether any request got a 2xx at least once
      def served? = @sent.any? { |one| SERVED.cover?(one.answer.status) }

      # @return [Hash{Integer => Integer}] the number of requests by status; those without a response are left out
      def statuses = @first.compact.tally.sort.to_h

      # @return [String] about the requests that got no 2xx; empty: all did
      def to_s
        others = @first.reject { |status| SERVED.cover?(status) }
        numbers = others.map { |status| REDIRECTED.cover?(status) ? REDIRECTED : status }.tally
        numbers.each_with_index.map do |(status, number), at|
          all = " of #{counted(@first.size, "request")}" if at.zero?
          "#{number}#{all} #{outcome(status, number)}"
        end.join(", ")
      end

      # @return [Array<String>] lines of the report
      def notes
        over_tls = "#{counted(@over_tls, "request")} had the header #{Request::TLS.first.join(": ")}, since the " \
                   "application redirects plain HTTP"
        [("responses: #{self}" unless to_s.empty?), (over_tls if @over_tls.positive?)].compact
      end

      private

      def outcome(status, number)
        return "got no response" unless status

        "#{number == 1 ? "was" : "were"} #{status == REDIRECTED ? "redirected" : "answered with #{status}"}"
      end
    end
  end
end
