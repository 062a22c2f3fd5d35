# frozen_string_literal: true

require "socket"

module Chaos
  # A client for the server's control socket.
  class Control
    Row = Struct.new(:word, :pairs) do
      def [](name) = pairs[name]
      def pid = pairs["pid"]&.to_i
    end

    # @param path [String] of the socket
    def initialize(path)
      @path = path
    end

    # @return [Array<Row>, nil] nil: no complete answer within that many seconds
    def ask(line, patience: 5)
      deadline = Chaos.now + patience
      socket = UNIXSocket.new(@path)
      socket.write("#{line}\n")
      text = read(socket, deadline) and text.lines.map { |record| row(record) }
    rescue SystemCallError, EOFError
      nil
    ensure
      socket&.close
    end

    # Does not wait for the outcome. If the monitor has no descriptor for us, it tries again.
    # @return [Boolean] whether the monitor accepted the command
    def tell(line)
      50.times { ask_once(line) ? (return true) : sleep(0.1) }
      false
    end

    # @return [Array<Row>, nil] all processes and the other rows of the monitor's status
    def status = ask("status", patience: 2)

    private

    def ask_once(line)
      socket = UNIXSocket.new(@path)
      socket.write("#{line}\n")
    rescue SystemCallError
      nil
    ensure
      socket&.close
    end

    def read(socket, deadline)
      text = +""
      loop do
        return unless socket.wait_readable([deadline - Chaos.now, 0].max)

        part = socket.read_nonblock(65_536, exception: false)
        return text if part.nil?

        text << part unless part == :wait_readable
      end
    end

    def row(record)
      word, *pairs = record.split
      Row.new(word, pairs.to_h { |pair| pair.split("=", 2).then { |name, value| [name, plain(value)] } })
    end

    def plain(value) = value.to_s.gsub(/%(\h\h)/) { $1.hex.chr } # rubocop:disable Style/PerlBackrefs
  end
end
