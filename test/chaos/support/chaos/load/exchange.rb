# frozen_string_literal: true

require "digest"

module Chaos
  module Load
    # One numbered request: how it is sent, the expected response, and the outcome.
    #
    # A kind: the verb, the path, and what the client does slowly.
    class Exchange
      KINDS = {
        "get" => %w[GET get], "post" => %w[POST post], "chunked" => %w[POST post],
        "upload" => %w[POST upload], "stream" => %w[GET stream], "large" => %w[GET large],
        "slow-app" => %w[GET slow], "slow-post" => %w[POST post], "slow-head" => %w[GET get],
        "slow-reader" => %w[GET large], "slow-stream" => %w[GET stream]
      }.freeze

      # The outcome: answered, refused (a response with another status), closed (no response), cut (an incomplete
      # response), wrong, silent or unconnected; detail has more.
      attr_reader :outcome, :status, :pid, :detail, :began, :ended, :id, :kind

      # @param place [String, nil] the path of the pool that is to serve it, "/apart"; nil: the main one
      def initialize(id, kind, random, place = nil)
        @place = place
        @id = id
        @kind = kind
        @random = random
        @verb, @path = KINDS.fetch(kind)
        @overslept = 0.0
        @body = body
        @argument = argument
      end

      def began! = @began = Chaos.now
      def body_bytes = @body.to_s.bytesize

      # @return [Boolean] whether the connection can be reused
      def run(wire)
        send_all(wire)
        receive(wire)
      end

      # Sends the request without waiting, because another one follows.
      def send_all(wire)
        began! unless @began
        wire.renew
        @whole = parts.all? { |part, pause| rest(pause) && wire.write(part) }
      rescue Wire::Silence => e
        conclude(:silent, e.message)
      end

      # @return [Boolean] whether the connection can be reused
      def receive(wire)
        return false if outcome

        judge(wire.answer(slowly: kind.match?(/reader|slow-stream/) ? 0.05 : 0, size: 16_384))
      rescue Wire::Ended => e
        conclude(e.begun ? :cut : :closed, e.message)
      rescue Wire::Silence => e
        conclude(:silent, e.message)
      rescue Wire::Nonsense, ArgumentError => e
        conclude(:wrong, e.message)
      end

      # @return [false]
      def conclude(outcome, detail = nil)
        @outcome = outcome
        @detail = detail
        @ended = Chaos.now
        false
      end

      # One line of the load's output.
      def to_s
        [id, kind, @verb, format("%.3f", began), format("%.3f", ended), outcome, status || "-", pid || "-",
         format("%.2f", @overslept), detail.to_s.tr("\n", " ")].join(" ").strip
      end

      private

      def body
        case kind
        when "post", "chunked" then @random.bytes([10, 2000, 12_000, 60_000, 200_000].sample(random: @random))
        when "upload", "slow-post" then @random.bytes(20_000)
        end
      end

      def argument
        case kind
        when "stream" then 30_000
        when "large" then [50_000, 400_000].sample(random: @random)
        when "slow-reader", "slow-stream" then 300_000
        when "slow-app" then 0.3
        end
      end

      # Records how much longer than intended the client slept, because the server has limits for slow clients.
      def rest(seconds)
        return true if seconds.zero?

        before = Chaos.now
        sleep seconds
        @overslept += Chaos.now - before - seconds
      end

      # @return [Array<Array(String, Float)>] parts to send, and the pause before each
      def parts
        target = "#{@place}/#{@path}/#{id}#{"?#{@argument}" if @argument}"
        head = "#{@verb} #{target} HTTP/1.1\r\nHost: chaos\r\n#{length}\r\n"
        return head.scan(/.{1,12}/m).map { |part| [part, 0.05] } if kind == "slow-head"

        [[head, 0], *body_parts]
      end

      def length
        return unless @body

        kind == "chunked" ? "Transfer-Encoding: chunked\r\n" : "Content-Length: #{@body.bytesize}\r\n"
      end

      def body_parts
        case kind
        when "chunked"
          chunks = @body.scan(/.{1,9000}/mn).map { |part| ["#{part.bytesize.to_s(16)}\r\n#{part}\r\n", 0.002] }
          [*chunks, ["0\r\n\r\n", 0]]
        when "upload", "slow-post" then @body.scan(/.{1,4000}/mn).map { |part| [part, 0.1] }
        else @body ? [[@body, 0]] : []
        end
      end

      def judge(answer)
        @status = answer.status
        @pid = answer.fields["x-pid"]
        return conclude(:refused) || (answer.kept? && @whole) unless status == 200
        return conclude(:wrong, "another's answer") unless answer.fields["x-id"] == id
        return conclude(:wrong, "of pool #{answer.fields["x-pool"]}") unless of_its_pool?(answer)
        return conclude(:wrong, "#{answer.body.bytesize} bytes: #{answer.body[0, 80]}") unless answer.body == expected

        conclude(:answered)
        answer.kept? && @whole
      end

      def of_its_pool?(answer) = (answer.fields["x-pool"] == "apart") == !@place.nil?

      def expected
        case @path
        when "post", "upload" then "#{id} #{Digest::SHA256.hexdigest(@body)}"
        when "stream", "large" then ("#{id}\n" * (@argument / 2)).byteslice(0, @argument)
        else "#{id} #{@path}"
        end
      end
    end
  end
end
