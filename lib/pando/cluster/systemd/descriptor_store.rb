# frozen_string_literal: true

require "socket"
require "pando/cluster/listening/inherited"

module Pando
  module Cluster
    class Systemd
      # Gives the service manager a copy of each listening socket that we open (FDSTORE=1 of sd_notify(3)), so
      # that a server that is started again after a crash finds them as it left them, and whoever has connected
      # meanwhile.
      #
      # Owned by the monitor.
      #
      # @api private
      class DescriptorStore
        # How many it takes (FileDescriptorStoreMax=); systemd says so since its version 254.
        ROOM = "FDSTORE"

        # @param environment [ENV, Hash] loses what only this is for
        # @return [DescriptorStore, nil] nil where there is none
        def self.from(environment)
          room = environment.delete(ROOM).to_i
          path = environment[Systemd::SOCKET]
          new(path, room) if room.positive? && path && !path.empty?
        end

        # After an upgrade.
        # @param state [Upgrade::State]
        # @return [DescriptorStore, nil]
        def self.taken_up(state)
          record = state.any("store") or return
          names = state.all("stored").map { |one| one.text(:name) }
          new(record.text(:path), record.integer(:room), names)
        end

        # @param names [Array<String>] of what it keeps
        def initialize(path, room, names = [])
          @path = path
          @address = Socket.sockaddr_un(path.sub(/\A@/, "\0"))
          @room = room
          @names = names
        end

        # @param state [Upgrade::State]
        def to_state(state)
          state.add("store", path: @path, room: @room)
          @names.each { |name| state.add("stored", name: name) }
        end

        # @param listener [Listening::OwnListener]
        # @return [Boolean] whether it has been sent
        def keep(listener)
          return false if @names.size >= @room

          sent = tell("FDSTORE=1\nFDNAME=#{name(listener)}", listener.socket)
          @names.push(name(listener)) if sent
          sent
        end

        # @return [Boolean] whether it has been sent
        def forget(listener)
          @names.delete(name(listener))
          tell("FDSTOREREMOVE=1\nFDNAME=#{name(listener)}")
        end

        private

        # Its characters are those of a file's name; a colon would end it.
        def name(listener) = "#{Listening::Inherited::STORED}#{listener.name.tr(":", "_")}"[0, 255]

        def tell(text, socket = nil)
          rights = socket && Socket::AncillaryData.unix_rights(socket)
          Socket.open(:UNIX, :DGRAM) do |sender|
            sender.sendmsg_nonblock(text, 0, @address, *rights, exception: false).is_a?(Integer)
          end
        rescue SystemCallError
          false # it is being restarted itself
        end
      end
    end
  end
end
