# frozen_string_literal: true

require "pando/cluster/passing_fault"

module Pando
  module Cluster
    # What a process tells the monitor of an error that ends its start. Made by a Role, in its process.
    class FailureReport
      DETAIL_LIMIT = 24_000 # bytes

      # @param error [Exception]
      def initialize(error)
        @error = error
      end

      # @return [Boolean] whether the same start may succeed a moment later
      def passing? = PassingFault.of?(@error)

      # @return [String] the error and its cause, with their backtraces
      def detail = [*lines_of(@error), *lines_of_cause(@error.cause)].join("\n")[0, DETAIL_LIMIT]

      # @return [String] "no key (KeyError) at config/initializers/pay.rb:7", which is all that a failed reload prints
      def summary
        summary = "#{@error.message.to_s.lines.first&.chomp} (#{@error.class})"
        begin
          line = application_line
          told = line.nil? || summary.match?(/(?<!\w)#{Regexp.escape(line[/.+:/])}\d/)
          told ? summary : "#{summary} at #{line}"
        rescue Exception # rubocop:disable Lint/RescueException -- nothing may hide the failure itself
          summary
        end
      end

      private

      # The exception of an application may answer with anything.
      # @return [Array<String>] in bytes
      def lines_of(error) = ["#{error.message} (#{error.class})", *error.backtrace].map { |line| line.to_s.b }

      def lines_of_cause(cause)
        return [] unless cause

        first, *rest = lines_of(cause)
        ["caused by: #{first}", *rest]
      end

      # @return [String, nil] the innermost line of the application that the error has passed, or else its cause
      def application_line
        require "pando/code_places" # not in the monitor, which loads this file as well
        places = CodePlaces.new(Dir.pwd)
        [@error, @error.cause].compact.flat_map { |each| Array(each.backtrace) }.each do |frame|
          path, line = frame.to_s.scrub.match(/\A(.+?)(:\d+)/)&.captures
          path = File.realpath(path) if path && File.exist?(path) # a release may be loaded through a link to its folder
          return "#{places.short(path)}#{line}" if places.own?(path)
        end
        nil
      end
    end
  end
end
