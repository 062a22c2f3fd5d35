# frozen_string_literal: true

require "socket"

# Wrong messages that a process of the cluster can send on its link. Lives in the server under test: config.rb tells it
# the role, and a hook or a request triggers a lie.
module Lies
  class << self
    attr_accessor :role

    # @param kind [String] see LIES; other kinds do nothing
    def tell(kind) = LIES[kind]&.call(@role, @role.instance_variable_get(:@link))

    # Lies once, and in one process: the one that succeeds in removing the order's file.
    def tell_if_told(file)
      return unless File.exist?(file)

      kind = File.read(file)
      File.unlink(file)
      tell(kind)
    rescue Errno::ENOENT
      nil # another process has lied
    end
  end

  # The link's buffer can be full.
  def self.raw(link, bytes) = link.to_io.sendmsg_nonblock(bytes, 0, exception: false)

  LIES = {
    "ready twice" => ->(role, _) { role.report(:ready) },
    "an order" => ->(role, _) { role.report(:promote, seat: 1) },
    "a fork that failed" => ->(role, _) { role.report(:fork_failed, seat: role.seat + 1, text: "no") },
    "a wish to leave" => ->(role, _) { role.report(:replacement_wanted, text: "a lie") },
    "a last word" => ->(role, _) { role.report(:failed, text: "I am dead") },
    "a step" => ->(role, _) { role.report(:checking, text: "a lie") },
    "garbage" => ->(_, link) { raw(link, Random.bytes(64)) },
    "an empty record" => ->(_, link) { raw(link, "") },
    "a huge record" => ->(_, link) { raw(link, "x" * 60_000) },
    "a flood" => ->(role, _) { 2000.times { role.report(:detail, text: "x" * 800) } },
    "descriptors" => lambda do |_, link|
      head = [22, 1, 0, 0, 0, 0, 0].pack("CCSLLLL")
      link.to_io.sendmsg_nonblock(head, 0, nil, Socket::AncillaryData.unix_rights(*[$stdin] * 20), exception: false)
    end,
    "silence" => ->(_, link) { link.close }
  }.freeze
end
