# frozen_string_literal: true

module Pando
  module Measure
    # Parses an HTTP response piece by piece: only its status, its header fields and its end.
    #
    # @api private
    class Reply
      # The bytes are not an HTTP response.
      class Malformed < StandardError; end

      HEAD = "\r\n\r\n"
      STATUS = %r{\AHTTP/1\.([01]) (\d{3})\b}
      # Statuses that have no body (RFC 9110).
      BODILESS = [204, 304].freeze
      LONGEST_HEAD = 1_048_576
      private_constant :HEAD, :STATUS, :BODILESS, :LONGEST_HEAD

      # @return [Integer, nil] nil: not known yet
      attr_reader :status

      # @param verb [String] of the request
      def initialize(verb)
        @verb = verb
        @buffer = String.new(encoding: Encoding::BINARY)
        @state = :head
        @fields = {}
      end

      # @param bytes [String]
      # @return [self]
      # @raise [Malformed]
      def <<(bytes)
        @buffer << bytes
        nil while step
        self
      end

      # The server has closed the connection.
      # @return [self]
      def close
        @state = :done if @state == :rest
        self
      end

      # @return [Boolean]
      def done? = @state == :done

      # @return [Boolean] whether the connection may be used again
      def keep? = done? && @keep

      # @param name [String] in small letters
      # @return [String, nil]
      def [](name) = @fields[name]

      private

      # @return [Boolean] whether there may be more to do
      def step
        case @state
        when :head then head
        when :body then body(:done)
        when :size then size
        when :chunk then body(:size)
        when :trailer then trailer
        when :rest then @buffer.clear && false
        end
      end

      def head
        unless (finish = @buffer.index(HEAD))
          raise Malformed, "the response head has no end" if @buffer.bytesize > LONGEST_HEAD

          return false
        end
        understand(@buffer.slice!(0, finish + HEAD.bytesize))
      end

      def understand(text)
        minor, status = STATUS.match(text)&.captures
        raise Malformed, "the response begins with #{text.lines.first.to_s[0, 60].inspect}" unless status

        return true if status.start_with?("1") # such as an early hint

        @status = status.to_i
        @fields = text.lines(chomp: true).drop(1).to_h { |line| split(line) }
        @keep = @fields.fetch("connection", minor == "1" ? "" : "close").casecmp("close") != 0
        @state = choose
        true
      end

      def split(line)
        name, _, value = line.partition(":")
        [name.downcase, value.strip]
      end

      def choose
        return :done if @verb == "HEAD" || BODILESS.include?(status)
        return :size if @fields["transfer-encoding"]&.downcase&.include?("chunked")
        return :rest.tap { @keep = false } unless @fields.key?("content-length")

        @left = @fields["content-length"].to_i
        :body
      end

      def body(following)
        taken = @buffer.slice!(0, @left).bytesize
        @left -= taken
        return false if @left.positive?

        @state = following
      end

      def size
        line = line() or return false
        number = Integer(line[/\A\h{1,15}/], 16, exception: false) if line.match?(/\A\h/)
        raise Malformed, "a chunk has the size #{line[0, 20].inspect}" unless number

        @left = number + 2
        @state = number.zero? ? :trailer : :chunk
      end

      def trailer
        line = line() or return false
        @state = :done if line.empty?
        true
      end

      def line
        finish = @buffer.index("\r\n") or return
        @buffer.slice!(0, finish + 2).delete_suffix("\r\n")
      end
    end
  end
end
