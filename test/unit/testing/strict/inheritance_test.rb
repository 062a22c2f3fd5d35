# frozen_string_literal: true

require "test_helper"
require "pando/testing/strict"
require "support/descriptor_use"

# The uses of an inherited descriptor, as strict mode finds them.
class StrictInheritanceTest < Minitest::Test
  include Support::DescriptorUse

  # A server may send a heartbeat or the end of an idle connection at any time.
  def test_bytes_that_nobody_has_read_are_no_use
    connection do |client, server|
      inheritance = inheritance_of(client)
      server << "news"
      assert(client.wait_readable(10))

      assert_empty(inheritance.used)
      server.close
      IO.for_fd(client.fileno, autoclose: false).read
      assert_equal([:shared_socket], inheritance.used.map(&:kind))
    end
  end

  def test_c_code_that_writes_to_a_tcp_connection
    connection do |client, _|
      inheritance = inheritance_of(client)
      c_write(client)

      assert_equal([:shared_socket], inheritance.used.map(&:kind))
    end
  end

  def test_a_frozen_io_which_only_c_code_can_use
    connection do |client, _|
      inheritance = inheritance_of(client.freeze)
      inheritance.watch
      c_write(client)

      assert_equal([[:shared_socket, nil]], inheritance.used.map { |one| [one.kind, one.location] })
    end
  end

  private

  # As at a fork. The other descriptors of this process do not count.
  def inheritance_of(one)
    others = ObjectSpace.each_object(IO).reject do |io|
      [nil, one.fileno].include?(Pando::ForkSafety::Descriptors.number(io))
    end
    Pando::Testing::Strict::Inheritance.new(others)
  end
end
