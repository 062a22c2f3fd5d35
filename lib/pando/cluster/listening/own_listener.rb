# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/cluster/listening/inherited"
require "pando/cluster/listening/listener"

module Pando
  module Cluster
    module Listening
      # A listening socket as the monitor has it: with the line of the configuration that it is for, and
      # the file, if it has one, that goes with it.
      #
      # @api private
      class OwnListener < Listener
        extend Serializable

        serialize number: :integer, proxied: :flag, held: :flag, stored: :flag, path: :text, file: :integers

        KINDS = %i[tcp unix abstract systemd].freeze

        # What an upgrade tells of a line that the configuration does not have any more.
        Former = Struct.new(:kind, :path, :name, :proxy_protocol) do
          def self.of(record)
            new(record.choice(:kind, KINDS), nil, record.text(:spec), false)
          end

          def tcp? = kind == :tcp
          def backlog = nil
          def mode = nil
          def umask = nil
          def to_s = name
        end

        # @return [Config::Listen] or what answers alike
        attr_reader :spec
        # @return [Inherited::Entry, nil] nil: we have opened it
        attr_reader :entry

        # @return [OwnListener] a new socket
        # @raise [BootError]
        def self.open(spec, number) = new(ListenerSocket.open(spec), spec, number)

        # @param entry [Inherited::Entry]
        def self.of(entry, spec, number) = new(entry.socket, spec, number, entry)

        # After an upgrade.
        # @param record [Upgrade::Record] @param state [Upgrade::State]
        # @param specs [Array] that it may be for
        def self.taken_up(record, state, specs)
          socket = Socket.for_fd(state.take(record.integer(:descriptor)))
          entry = Inherited::Entry.new(socket, record.text(:entry)) if record.key?(:entry)
          spec = specs.find { |one| one.to_s == record.text(:spec) } || Former.of(record)
          new(socket, spec, 0, entry).take_up(record)
        end

        # @param entry [Inherited::Entry, nil] the socket is not ours to shut down, nor its file to remove
        def initialize(socket, spec, number, entry = nil)
          super(socket, number: number, proxied: spec.proxy_protocol, held: !entry.nil?)
          @spec = spec
          @name = ListenerSocket.name(socket)
          @entry = entry
          @stored = entry&.stored?
          @path = ListenerSocket.real_path(spec) if entry.nil? || @stored
          @file = ListenerSocket.file(@path)
        end

        # @param state [Upgrade::State] @param word [String] what it is there
        def to_state(state, word)
          state.add(word, descriptor: state.keep(socket), spec: spec.to_s, kind: spec.kind, entry: entry&.name,
                          **serialized_fields)
        end

        # The service manager has been given it to keep, for whoever comes after us.
        def hold
          @held = @stored = true
        end

        def stored? = @stored

        # It keeps it no longer.
        def release
          @held = @stored = false
          @entry = nil
        end

        # Written when it is opened: later there may be no room for the thread in which Ruby 3.3 looks an address up.
        # @return [String] with the port that the kernel chose for port 0
        attr_reader :name

        def inherited? = !entry.nil?

        # Which it is, for events.
        def identity = { listen: name, inherited: (true if inherited?) }.compact

        # @return [Boolean] whether it serves what this line asks for
        def for?(spec)
          return entry.for?(spec) if entry
          return false unless spec == self.spec || (spec.tcp? && ListenerSocket.at?(socket, spec))

          @file == ListenerSocket.file(ListenerSocket.real_path(spec)) # a link on its path may lead elsewhere by now
        end

        # @return [Listener] with the options of this line
        def as(spec) = Listener.new(socket, number: number, proxied: spec.proxy_protocol, held: held?)

        # The same address is wanted with other options.
        # @return [Boolean] whether who accepts from it must know
        # @raise [SystemCallError] the kernel does not do it
        def adopt(spec)
          before = flags
          ListenerSocket.adjust(socket, @spec, spec) unless entry
          @proxied = spec.proxy_protocol
          @spec = spec
          before != flags
        end

        # No newcomer finds it any more.
        def hide
          ListenerSocket.unlink(@path, @file) unless held?
          @file = nil
        end

        def close
          hide
          super
        end
      end
    end
  end
end
