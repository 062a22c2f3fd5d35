# frozen_string_literal: true

require "pando/measure/subject"
require "pando/measure/client"
require "pando/wording"

module Pando
  module Measure
    # The first pass: sends each of the different requests once to each server. A request that one server fails is left
    # out for both.
    class Rehearsal
      include Wording

      # The header by which a TLS proxy satisfies an application that insists on TLS.
      TLS = { "X-Forwarded-Proto" => "https" }.freeze

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
          @headers = TLS.merge(headers)
          answers = ask_all
        end
        @redirected = answers.values.first.count(&:redirected?)
        @selection = selection.without(reasons(answers))
        raise nothing_left(answers) if selection.requests.empty?

        @broken = breakage(answers)
        self
      end

      # Whether requests have the header of a TLS proxy.
      def tls? = headers.key?(TLS.keys.first)

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

      # A redirection to the same address over TLS.
      def sent_to_tls?(answer)
        answer.redirected? && answer.location.to_s.match?(%r{\Ahttps://[^/]+#{Regexp.escape(answer.request.target)}\z})
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
  end
end
