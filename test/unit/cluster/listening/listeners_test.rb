# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/cluster/monitor"
require "pando/config"

# Which sockets stay, come and go when the configuration changes.
class ListenersTest < Minitest::Test
  Listeners = Pando::Cluster::Listening::Listeners
  Listen = Pando::Config::Listen

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    @listeners = Listeners.new
  end

  def teardown
    @listeners.close
    FileUtils.rm_rf(@folder)
  end

  def at(name, **options) = Listen.parse("unix:#{@folder}/#{name}", **options)
  def path(name) = File.join(@folder, name)
  def become(*specs) = @listeners.adopt(@listeners.prepare(specs))
  def numbers = @listeners.map(&:number)

  # A new monitor takes them up.
  def upgrade(*specs)
    state = Pando::Cluster::Upgrade::State.new
    @listeners.to_state(state)
    state.define_singleton_method(:take) { |number| Pando::Sys.borrow(number) { |io| Pando::Sys.disown(io.dup) } }
    @listeners = Listeners.new.take_up(state, specs)
  end

  def ipv6_only?(listener) = listener.socket.getsockopt(:IPV6, :V6ONLY).bool

  def test_what_stays_keeps_its_socket_and_its_number
    become(at("a"), at("b"))
    before = @listeners.to_a
    told = become(at("c"), at("b"))

    assert_equal([1, 2], numbers.sort)
    assert_equal(["unix:#{path("c")}"], told.map(&:name))
    assert_same(before.last, @listeners.find { |one| one.number == 1 })
    assert_equal([before.first], @listeners.leaving)
    assert_equal(%w[b c], Dir.children(@folder).sort)
  end

  def test_who_is_taken_out_listens_until_it_is_forgotten
    become(at("a"), at("b"))
    become(at("b"))
    gone = @listeners.leaving.first
    refute_predicate(gone.socket, :closed?)
    @listeners.forget([gone])

    assert_predicate(gone.socket, :closed?)
    assert_empty(@listeners.leaving)
  end

  def test_a_number_comes_back_only_when_all_others_have_been_used
    become(at("a"))
    4.times { |round| become(at("a"), at(round.to_s)) && @listeners.forget(@listeners.leaving) }

    assert_equal([0, 4], numbers)
  end

  # A request may still run that came from the address with that number.
  def test_nor_does_the_last_number_come_back_at_once
    become(at("a"), at("b"))
    become(at("a"))
    @listeners.forget(@listeners.leaving)
    become(at("a"), at("c"))

    assert_equal([0, 2], numbers)
  end

  def test_nor_does_it_after_an_upgrade
    become(at("a"), at("b"))
    become(at("a"))
    @listeners.forget(@listeners.leaving)
    upgrade(at("a"))
    become(at("a"), at("c"))

    assert_equal([0, 2], numbers)
  end

  def test_all_ipv6_addresses_cover_ipv4_unless_another_line_does
    port = TCPServer.open("0.0.0.0", 0) { |server| server.local_address.ip_port }
    become(Listen.parse("[::]:#{port}"))
    refute(ipv6_only?(@listeners.first))
    @listeners.close
    become(Listen.parse("[::]:#{port}"), Listen.parse("0.0.0.0:#{port}"), Listen.parse("[::1]:0"))

    assert_equal(["[::]:#{port}", "0.0.0.0:#{port}"], @listeners.names.first(2))
    assert(ipv6_only?(@listeners.first))
  rescue Pando::BootError => e
    skip e.message if e.message.match?(/address family|assign/i)
    raise
  end

  def test_what_ipv6_covers_cannot_change_while_it_is_open
    port = TCPServer.open("0.0.0.0", 0) { |server| server.local_address.ip_port }
    both, four = ["[::]", "0.0.0.0"].map { |host| Listen.parse("#{host}:#{port}") }
    become(both)
    [[both, four], [four]].each do |specs|
      error = assert_raises(Pando::BootError) { become(*specs) }
      assert_match(/is open for IPv4 as well. Restart the server to change that\z/, error.message)
    end
    @listeners.close
    become(both, four)
    error = assert_raises(Pando::BootError) { become(both) }
    assert_match(/is open for IPv6 only. Restart the server to change that\z/, error.message)
  end

  # Ruby 3.3 looks an address up in a thread, for which there may be no room.
  def test_the_name_of_an_open_one_needs_no_look_up
    become(Listen.parse("127.0.0.1:0"))
    socket = @listeners.first.socket
    address = socket.local_address
    address.define_singleton_method(:ip_address) { raise SocketError, "getnameinfo" }
    socket.define_singleton_method(:local_address) { address }

    assert_equal([["127.0.0.1:#{address.ip_port}", 0]], @listeners.waiting.to_a)
  end

  def test_one_that_cannot_be_opened_leaves_all_as_it_was
    become(at("a"))
    taken = UNIXServer.new(path("taken"))
    error = assert_raises(Pando::BootError) { @listeners.prepare([at("new"), at("taken")]) }

    assert_match(/another process listens there/, error.message)
    assert_equal(%w[a taken], Dir.children(@folder).sort)
    assert_equal([0], numbers)
  ensure
    taken&.close
  end

  def test_a_change_that_is_given_up
    become(at("a"))
    @listeners.give_up(@listeners.prepare([at("b")]))

    assert_equal(%w[a], Dir.children(@folder))
  end

  def test_other_options_of_the_same_address
    become(at("a", mode: 0o600))
    told = become(at("a", mode: 0o640, proxy_protocol: true))

    assert_equal(0o640, File.stat(path("a")).mode & 0o777)
    assert_equal([[0, 1]], told.map { |one| [one.number, one.flags] })
    assert_empty(become(at("a", mode: 0o640, proxy_protocol: true)))
  end

  def test_a_listener_that_the_configuration_did_not_have_at_an_upgrade_and_has_again
    become(at("a", mode: 0o600))
    upgrade
    told = become(at("a", mode: 0o640))

    assert_equal([[], 0, 0o640], [told, @listeners.leaving.size, File.stat(path("a")).mode & 0o777])
  end

  def test_the_new_release_is_told_its_own_options
    become(at("a"))
    change = @listeners.prepare([at("a", proxy_protocol: true)])

    assert_equal([%w[0], %w[0p]], [@listeners.map(&:encode), change.views.map(&:encode)])
    @listeners.give_up(change)
  end

  def test_a_file_that_somebody_has_removed_is_made_again
    become(at("a"))
    File.unlink(path("a"))
    become(at("a"))

    assert(File.socket?(path("a")))
    assert_equal([1, 1], [@listeners.count, @listeners.leaving.size])
  end

  def test_the_same_port_in_other_words
    become(Listen.parse("127.0.0.1:0"))
    port = @listeners.first.local_address.ip_port
    told = become(Listen.parse("localhost:#{port}"))
    skip "localhost is not 127.0.0.1 here" if @listeners.leaving.any?

    assert_empty(told)
  end

  def test_an_address_that_overlaps_with_our_own
    become(Listen.parse("127.0.0.1:0"))
    port = @listeners.first.local_address.ip_port
    error = assert_raises(Pando::BootError) { @listeners.prepare([Listen.parse("0.0.0.0:#{port}")]) }

    assert_match(/This server itself listens at 127.0.0.1:#{port}: restart it to change that/, error.message)
  end

  def test_what_a_child_is_told
    listener = Pando::Cluster::Listening::Listener.decode("17ph", $stdin)

    assert_equal([17, true, true, 3], [listener.number, listener.proxied?, listener.held?, listener.flags])
    assert_equal("17ph", listener.encode)
    ["", "x", "1x", "12345", "1hp", "1\n"].each { |text| assert_nil(Pando::Cluster::Listening::Listener.decode(text, $stdin)) }
  end
end
