# frozen_string_literal: true

require "pando/doctor/request_line"
require "pando/errors"

module Pando
  module Doctor
    # Reads what the application is to be asked, from lines as {RequestLine} has them.
    #
    # Of a log only GET and HEAD are replayed: it does not tell the bodies of the others.
    # The same request is sent once a round; lines behind the {LIMIT}th request are left out.
    class RequestList
      # Requests in a round.
      LIMIT = 200
      # `--requests routes`: what the application's router knows.
      ROUTES = "routes"

      # @param path [String]
      # @return [RequestList]
      # @raise [UsageError] if the file cannot be read or holds no request
      def self.read(path)
        list = new(File.foreach(path, mode: "rb"))
        raise UsageError, "--requests: #{path} holds no request that can be sent" if list.requests.empty?

        list
      rescue SystemCallError => e
        raise UsageError, "--requests: #{e.message}"
      end

      # @param paths [Array<String>]
      # @return [RequestList]
      def self.of_paths(paths) = new(paths)

      # @return [Array<Request>] at most {LIMIT}, each once
      attr_reader :requests
      # @return [Integer] lines that hold no request, or one that cannot be replayed
      attr_reader :skipped

      # @param lines [Enumerable<String>]
      def initialize(lines)
        @skipped = 0
        found = {}
        lines.each do |text|
          line = RequestLine.new(text)
          next if line.empty?

          fit?(line) ? found[line.request] = true : @skipped += 1
          break if found.size >= LIMIT
        end
        @requests = found.keys
      end

      private

      def fit?(line) = line.request && (line.safe? || !line.logged?)
    end
  end
end
