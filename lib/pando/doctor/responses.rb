# frozen_string_literal: true

require "pando/doctor/requests"
require "pando/doctor/subject/wire"
require "pando/wording"

module Pando
  module Doctor
    # What the application answered: a doctor whose requests were all redirected to a login has seen little of the
    # application's own code. A request counts once, with its first response. Owned by the evidence of an examination,
    # in the command's process.
    class Responses
      include Wording

      NOT_MODIFIED = 304
      SERVED = [*200..299, NOT_MODIFIED].freeze
      REDIRECTED = ([*300..399] - [NOT_MODIFIED]).freeze

      # @param sent [Array<Evidence::Sent>] @param over_tls [Integer] requests that were sent as by a TLS proxy
      def initialize(sent, over_tls = 0)
        @sent = sent
        @over_tls = over_tls
        @answers = sent.uniq(&:request).map(&:answer)
        @first = @answers.map(&:status)
      end

      # @return [Boolean] whether any request got a 2xx at least once
      def served? = @sent.any? { |one| SERVED.include?(one.answer.status) }

      # @return [Boolean] whether half of the requests or more were answered with 5xx: the others say little about the
      #   application
      def broken? = @first.count { |status| status.to_i >= 500 } * 2 >= @first.size

      # @return [Boolean] whether each request was answered with 404
      def not_found? = @first.uniq == [404]

      # @return [Hash{Integer => Integer}] the number of requests by status; those without a response are left out
      def statuses = @first.compact.tally.sort.to_h

      # @return [String] about the requests that got no 2xx; empty: all did
      def to_s
        others = @first.reject { |status| SERVED.include?(status) }
        numbers = others.map { |status| REDIRECTED.include?(status) ? REDIRECTED : status }.tally
        told = numbers.each_with_index.map do |(status, number), at|
          all = " of #{counted(@first.size, "request")}" if at.zero?
          "#{number}#{all} #{outcome(status, number)}"
        end
        [told.join(", "), *target].join("; ")
      end

      # @return [Array<String>] lines of the report
      def notes
        over_tls = "#{counted(@over_tls, "request")} had the header #{Request::TLS.first.join(": ")}, since the " \
                   "application redirects plain HTTP"
        [("responses: #{self}" unless to_s.empty?), (over_tls if @over_tls.positive?)].compact
      end

      private

      # Tells a login from another host. The query may hold secrets.
      def target
        location = @answers.find { |one| REDIRECTED.include?(one.status) && one.location }&.location
        "a redirection leads to #{Subject::Wire.clean(location[/\A[^?#]*/])}" if location
      end

      def outcome(status, number)
        return "got no response" unless status

        "#{number == 1 ? "was" : "were"} #{status == REDIRECTED ? "redirected" : "answered with #{status}"}"
      end
    end
  end
end
