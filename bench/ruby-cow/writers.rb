# frozen_string_literal: true

# What a forked process has written to, of a real application: each page that it shares with its forker no more is
# compared with the forker's word by word, and each word that differs looked up in what malloc was called for. As root, for
# two processes that blocks.c records (see there), both at rest:
#
#     ruby bench/ruby-cow/writers.rb CHILD FORKER [LINES]
#
# Columns: MiB of pages, those with several writers divided between them; of pages that nobody else has written to; words.

# The memory of a process, as proc(5) shows it.
class Image
  PAGE = 4096
  WORD = 8
  Mapping = Struct.new(:first, :last, :flags, :offset, :name)

  def initialize(pid)
    @pid = pid
    @memory = File.open("/proc/#{pid}/mem", "rb")
    @pagemap = File.open("/proc/#{pid}/pagemap", "rb")
  end

  def mappings
    @mappings ||= File.readlines("/proc/#{@pid}/maps").map do |line|
      range, flags, offset, _, _, name = line.split
      Mapping.new(*range.split("-").map(&:hex), flags, offset.hex, name.to_s)
    end
  end

  def executable = File.readlink("/proc/#{@pid}/exe")

  # @return [String, nil] nil: nothing is there
  def read(address, size)
    @memory.seek(address)
    @memory.read(size)
  rescue SystemCallError, RangeError
    nil
  end

  def words(address, count = PAGE / WORD) = read(address, count * WORD)&.unpack("Q*") || []

  # @return [Array<Integer>] the numbers of the kernel's pages, 0: none
  def frames(mapping)
    @pagemap.seek(mapping.first / PAGE * WORD)
    entries = @pagemap.read((mapping.last - mapping.first) / PAGE * WORD).to_s.unpack("Q*")
    entries.map { |entry| entry[63] == 1 ? entry & ((1 << 55) - 1) : 0 }
  end
end

# What blocks.c has recorded in a process.
class Blocks
  TABLE = 0x600000000000
  CALLERS = 0x610000000000
  SLOTS = 1 << 23
  CHUNK = 1 << 20
  Block = Struct.new(:address, :size, :callers)

  def initialize(image)
    @image = image
    @blocks = (0...(SLOTS * 16)).step(CHUNK).flat_map { |offset| blocks(offset) }.sort_by!(&:address)
    abort "blocks.so is not loaded there" if @blocks.empty?
  end

  # @return [Block, nil]
  def at(address)
    index = @blocks.bsearch_index { |block| block.address > address } || @blocks.size
    block = @blocks[index - 1] if index.positive?
    block if block && address < block.address + block.size
  end

  # @return [Array<Integer>] addresses in the code, innermost first
  def callers(block) = @image.words(CALLERS + (block.callers * 96), 11).drop(1).reject(&:zero?)

  private

  def blocks(offset)
    @image.words(TABLE + offset, CHUNK / 8).each_slice(2).filter_map do |address, rest|
      Block.new(address, rest & 0xffffffff, rest >> 32) if address > 1
    end
  end
end

# Names of functions, by address.
class Functions
  # What stands between malloc and those who want memory.
  COMMON = /\A(?:objspace_|ruby_x|rb_x|rb_gc_impl_|handle_malloc|calloc1|rb_alloc_tmp|gc_|alloc::|core::|std::|hashbrown|
              <|__rust|__rdl|rust_|_RNvCs|xmalloc|ruby_mimm|ruby_malloc)|RawVec|raw_vec|exchange_malloc/x

  def initialize(image)
    @image = image
    @code = image.mappings.select { |mapping| mapping.name.start_with?("/") }
    @symbols = Hash.new { |all, path| all[path] = symbols(path) }
    @names = {}
  end

  # @return [String] the two innermost callers that say something
  def label(addresses)
    names = addresses.map { |address| @names[address] ||= name(address) }
    telling = names.drop_while { |name| COMMON.match?(name) }
    (telling.empty? ? names : telling).first(2).join(" < ")
  end

  private

  def name(address)
    mapping = @code.find { |one| (one.first...one.last).cover?(address) } or return "?"
    list = @symbols[mapping.name]
    index = list.bsearch_index { |symbol, _| symbol > address - 1 - base(mapping.name) } || list.size
    function = index.positive? ? list[index - 1].last : "?"
    mapping.name == @image.executable ? function : "#{File.basename(mapping.name)}:#{function}"
  end

  # Where a file's addresses begin: nowhere, if it is not to be moved.
  def base(path)
    (@bases ||= {})[path] ||=
      if File.binread(path, 2, 16).unpack1("S") == 2 then 0
      else @code.find { |mapping| mapping.name == path }.then { |mapping| mapping.first - mapping.offset }
      end
  end

  def symbols(path)
    lines = [%w[-C], %w[-DC]].lazy.map { |flags| IO.popen(["nm", *flags, path], err: File::NULL, &:readlines) }
    (lines.find(&:any?) || []).filter_map do |line|
      address, kind, name = line.chomp.split(" ", 3)
      [address.hex, name] if kind&.match?(/[tTwWi]/)
    end.sort
  end
end

# The report.
class Writers
  MIB = 256.0 # pages
  Tally = Struct.new(:share, :alone, :words)

  def initialize(child, forker)
    @child = child
    @forker = forker
    @blocks = [child, forker].to_h { |image| [image, Blocks.new(image)] }
    @functions = Functions.new(child)
    @labels = {}
    @tallies = Hash.new { |all, writer| all[writer] = Tally.new(0.0, 0, 0) }
  end

  def print(lines)
    pages = copied
    pages.each { |page| look(page) }
    puts format("%.1f MiB copied", pages.size / MIB)
    @tallies.sort_by { |_, tally| -tally.share }.first(lines).each do |writer, tally|
      puts format("%7.2f %7.2f %8d  %s", tally.share / MIB, tally.alone / MIB, tally.words, writer)
    end
  end

  private

  # @return [Array<Integer>] addresses of the anonymous pages that both have, and not the same one
  def copied
    own = @child.mappings.select do |mapping|
      mapping.flags.start_with?("rw-p") && ["", "[heap]"].include?(mapping.name) && !tables?(mapping)
    end
    own.flat_map do |mapping|
      both = @child.frames(mapping).zip(@forker.frames(mapping)).each_with_index
      both.filter_map { |(one, other), index| mapping.first + (index * Image::PAGE) if differ?(one, other) }
    end
  end

  def tables?(mapping) = [Blocks::TABLE, Blocks::CALLERS].include?(mapping.first)
  def differ?(one, other) = !(one.zero? || other.to_i.zero? || one == other)

  def look(page)
    found = Hash.new(0)
    @child.words(page).zip(@forker.words(page)).each_with_index do |(now, before), index|
      found[writer(page + (index * Image::WORD))] += 1 if now != before
    end
    found["nothing: the content is the same again"] = 1 if found.empty?
    found.each { |writer, words| add(@tallies[writer], words, found.size) }
  end

  def add(tally, words, writers)
    tally.share += 1.0 / writers
    tally.alone += 1 if writers == 1
    tally.words += words
  end

  def writer(address)
    now, before = [@child, @forker].map { |image| @blocks[image].at(address) }
    return "no block of malloc's: Ruby's heap, the allocator's own" unless now || before
    return "freed: #{label(@forker, before)}" unless now
    return "in a free block: #{label(@child, now)}" unless before

    now == before ? label(@child, now) : "freed and used again: #{label(@forker, before)}"
  end

  def label(image, block)
    @labels[[image, block.callers]] ||= @functions.label(@blocks[image].callers(block))
  end
end

child, forker, lines = ARGV.map(&:to_i)
abort "Usage: #{$PROGRAM_NAME} CHILD FORKER [LINES]" unless forker
Writers.new(Image.new(child), Image.new(forker)).print(lines || 40)
