# frozen_string_literal: true

require "json"
require "socket"

module Pando
  module Doctor
    module Subject
      # The way from the examined processes to the doctor: datagrams on a UNIX socket of its
      # folder, so that no two processes' words mix. Opened in the monitor and in a cold mold,
      # inherited by what they fork. What is large goes into a file, and its name over the wire.
      #
      # @api private
      class Wire
        NAME = "wire"
        LARGE = 32_768 # bytes

        attr_reader :folder

        def initialize(folder)
          @folder = folder
          @socket = Socket.new(:UNIX, :DGRAM)
          @socket.connect(Addrinfo.unix(File.join(folder, NAME)))
        end

        # @param fact [Hash] what JSON knows
        # @return [nil] also when nobody listens any more
        def tell(fact)
          text = JSON.generate(Wire.clean(fact))
          text = JSON.generate(file: store(text)) if text.bytesize > LARGE
          @socket.send(text, 0)
          nil
        rescue SystemCallError
          nil
        end

        def ios = [@socket]

        # JSON wants UTF-8; a path or a message may be anything.
        def self.clean(value)
          case value
          when Hash then value.transform_values { |each| clean(each) }
          when Array then value.map { |each| clean(each) }
          when String then value.dup.force_encoding(Encoding::UTF_8).scrub("?")
          when Symbol, Numeric, true, false, nil then value
          when Exception then clean(error(value))
          else clean(value.to_s)
          end
        end

        def self.error(raised)
          { class: raised.class.name, message: raised.message.lines(chomp: true).first,
            stack: raised.backtrace.to_a.filter_map { |frame| frame[/\A.+?:\d+/] } }
        end
        private_class_method :error

        private

        def store(text)
          @stored = @stored.to_i + 1
          name = File.join(folder, "fact-#{Process.pid}-#{@stored}.json")
          File.write(name, text)
          name
        end
      end
    end
  end
end
