# frozen_string_literal: true

# Names of functions, by address.
class Functions
  # What stands between malloc and those who want memory.
  COMMON = /\A(?:objspace_|ruby_x|rb_x|rb_gc_impl_|handle_malloc|calloc1|rb_alloc_tmp|gc_|alloc::|core::|std::|
              hashbrown|<|__rust|__rdl|rust_|_RNvCs|xmalloc|ruby_mimm|ruby_malloc)|RawVec|raw_vec|exchange_malloc/x

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
    mapping = @code.find { |one| (one.from...one.to).cover?(address) } or return "?"
    list = @symbols[mapping.name]
    index = list.bsearch_index { |symbol, _| symbol > address - 1 - base(mapping.name) } || list.size
    function = index.positive? ? list[index - 1].last : "?"
    mapping.name == @image.executable ? function : "#{File.basename(mapping.name)}:#{function}"
  end

  # Where a file's addresses begin: nowhere, if it is not to be moved.
  def base(path)
    (@bases ||= {})[path] ||=
      if File.binread(path, 2, 16).unpack1("S") == 2 then 0
      else @code.find { |mapping| mapping.name == path }.then { |mapping| mapping.from - mapping.offset }
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
