# frozen_string_literal: true

require "pando/cluster/message"
require "pando/sys"

module Pando
  module Cluster
    class Poison
      # A method and a path that workers refuse for a while. Made by the monitor, and by a worker from the record that
      # it is sent.
      #
      # @api private
      class Ban
        # At the same time.
        MOST = 64
        # A path of so many bytes may have been cut (PANDO_SUBJECT_MAX, PANDO_VERB_MAX): others begin alike.
        PATH_BYTES = 112
        METHOD_BYTES = 16

        # @param name [Array(String, String)] @return [Boolean] whether it is known as a whole
        def self.possible?(name) = name[0].bytesize < METHOD_BYTES && name[1].bytesize < PATH_BYTES

        # In a worker.
        # @param text [String] of a message
        # @return [Ban, nil] nil when malformed
        def self.decode(text)
          ends_at, verb, path = text.split(" ", 3)
          ends_at = Float(ends_at || "", exception: false)
          new(*[verb, path].map { |part| part.unpack1("m0") }, ends_at) if ends_at && path
        rescue ArgumentError
          nil
        end

        # @param ends_at [Float] on Sys.now, which is the same in all processes
        def initialize(verb, path, ends_at)
          @verb = verb.b
          @path = path.b
          @ends_at = ends_at
          @told = []
        end

        def name = [@verb, @path]
        def over? = Sys.now >= @ends_at

        # @return [Integer] seconds that it lasts, one at least
        def seconds = (@ends_at - Sys.now).ceil.clamp(1..)

        # @return [Hash{Symbol => Object}] see Poison#refused
        def explain = { request: name.join(" "), seconds: @ends_at - Sys.now }

        # One that starts reads it before it serves. Who does not hear it now is told with the next turn.
        # @param workers [Array<Child>] all of them
        def tell(workers)
          @told &= workers
          (workers - @told).each { |worker| @told << worker if worker.order(message) }
        end

        private

        # The path is a client's: no bytes of it that a record's text would lose.
        def message
          @message ||= Message.new(:refuse, text: [@ends_at.floor(3), *name.map { |part| [part].pack("m0") }].join(" "))
        end
      end
    end
  end
end
