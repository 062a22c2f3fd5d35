# frozen_string_literal: true

module Pando
  module Cluster
    # What a service leaves to the process that takes its place: a file in memory for each service of the configuration.
    # The monitor keeps it (ServiceSupervisor), gives it to each process of the service, and never reads it.
    class ServiceNotes
      NUMBER = "Q"
      BYTES = 8

      def self.create = for_fd(Sys.memory_file("pando-notes"))

      # @param fd [Integer] which belongs to the notes from now on
      def self.for_fd(fd) = new(IO.for_fd(fd, "r+b").tap { |io| io.close_on_exec = true })

      def initialize(io)
        @io = io
      end

      def to_io = @io
      def fileno = @io.fileno
      def close = @io.close

      # @return [Integer] the number of the last event that the service has handled; 0: none
      def event_number = number(0)

      def event_number=(number)
        @io.pwrite([number].pack(NUMBER), 0)
      end

      # @return [String] the service's own text; empty: none
      def text
        size = number(BYTES)
        size.zero? ? "" : @io.pread(size, BYTES * 2).force_encoding(Encoding::UTF_8)
      end

      # A process that dies in the middle of this leaves none.
      def text=(text)
        @io.pwrite([0].pack(NUMBER), BYTES)
        @io.pwrite(text, BYTES * 2)
        @io.pwrite([text.bytesize].pack(NUMBER), BYTES)
      end

      private

      def number(place)
        @io.pread(BYTES, place).unpack1(NUMBER) || 0
      rescue EOFError
        0
      end
    end
  end
end
